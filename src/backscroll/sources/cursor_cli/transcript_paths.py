"""Parse the path of a transcript, and group transcripts by session."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = ["TranscriptPath", "group_by_session", "parse_transcript_path"]

_FOLDER = "agent-transcripts"
_SUBAGENTS = "subagents"


class TranscriptPath(NamedTuple):
    """The parts of a transcript's path."""

    project: str  # slug of the workspace path, which cannot be converted back
    id: str
    parent: str | None = None  # the session that a subagent belongs to
    parent_agent: str | None = None  # the subagent that started it, if not the session itself


def parse_transcript_path(path: Path | str) -> TranscriptPath | None:
    """Parse ``<id>.txt``, ``<id>.jsonl``, ``<id>/<id>.jsonl`` or ``<parent>/subagents/<id>.jsonl``.

    Return None for any other path.
    """
    *parts, name = str(path).split(os.sep)  # noqa: PTH206 - creating a Path takes longer than all other steps
    id_, _, suffix = name.rpartition(".")
    if not id_ or suffix not in ("jsonl", "txt") or _FOLDER not in parts:
        return None
    last = len(parts) - 1 - parts[::-1].index(_FOLDER)
    folders = parts[last + 1 :]
    project = parts[last - 1] if last else ""
    if _SUBAGENTS in folders[1:]:
        last_subagents = len(folders) - 1 - folders[::-1].index(_SUBAGENTS)
        starter = folders[last_subagents - 1]
        return TranscriptPath(project, id_, folders[0], starter if starter != folders[0] else None)
    # The folder of a session may contain text files that are not transcripts.
    if suffix == "txt" and folders and folders[-1] != id_:
        return None
    return TranscriptPath(project, id_)


def group_by_session(paths: Iterable[str]) -> dict[tuple[str | None, str], list[str]]:
    """Group transcripts by session. If a session has JSON lines, its plain text is omitted."""
    found: dict[tuple[str | None, str], list[str]] = {}
    for path in paths:
        parsed = parse_transcript_path(path)
        if parsed is not None:
            found.setdefault((parsed.parent, parsed.id), []).append(path)
    for key, of_session in found.items():
        found[key] = [path for path in of_session if path.endswith(".jsonl")] or of_session
    return found
