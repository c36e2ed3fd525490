"""Whose transcript a file is, by where it lies: one id may have several, and one of them counts."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = ["TranscriptPath", "group_by_session", "parse_transcript_path"]

_FOLDER = "agent-transcripts"
_SUBAGENTS = "subagents"


class TranscriptPath(NamedTuple):
    """What the path of a transcript says."""

    project: str  # made from the workspace's path, and not to be turned back
    id: str
    parent: str | None = None  # the session that a subagent belongs to
    outer: str | None = None  # the subagent that started it, where that was not the session itself


def parse_transcript_path(path: Path | str) -> TranscriptPath | None:
    """Of ``<id>.txt``, ``<id>.jsonl``, ``<id>/<id>.jsonl``, ``<parent>/subagents/<child>.jsonl``, or None."""
    *parts, name = str(path).split(os.sep)  # noqa: PTH206 - a Path costs more than all the rest
    id_, _, suffix = name.rpartition(".")
    if not id_ or suffix not in ("jsonl", "txt") or _FOLDER not in parts:
        return None
    at = len(parts) - 1 - parts[::-1].index(_FOLDER)
    folders = parts[at + 1 :]
    project = parts[at - 1] if at else ""
    if _SUBAGENTS in folders[1:]:
        nearest = len(folders) - 1 - folders[::-1].index(_SUBAGENTS)
        outer = folders[nearest - 1]
        return TranscriptPath(project, id_, folders[0], outer if outer != folders[0] else None)
    # Beside a session's own transcript its folder may hold text that is none.
    if suffix == "txt" and folders and folders[-1] != id_:
        return None
    return TranscriptPath(project, id_)


def group_by_session(paths: Iterable[str]) -> dict[tuple[str | None, str], list[str]]:
    """All transcripts by session, without the text of a session that also has lines."""
    found: dict[tuple[str | None, str], list[str]] = {}
    for path in paths:
        layout = parse_transcript_path(path)
        if layout is not None:
            found.setdefault((layout.parent, layout.id), []).append(path)
    for key, same in found.items():
        found[key] = [path for path in same if path.endswith(".jsonl")] or same
    return found
