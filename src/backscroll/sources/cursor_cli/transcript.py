"""Transcripts: a lossy copy of a session as text, kept per project by the IDE's agent and the CLI."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from backscroll.model import Closing, Item, Message, Opening, Origin, Problem, Tally
from backscroll.readers import times
from backscroll.sources.cursor_cli import transcript_lines, transcript_text, workspace
from backscroll.sources.cursor_cli.meta import read_sidecar
from backscroll.sources.cursor_cli.places import SOURCE

__all__ = ["Known", "read_transcript"]

_REASON = "a transcript keeps no tool results, no thinking and no times but those of prompts"
_PATH_PARAMS = (
    "path",
    "file_path",
    "target_file",
    "targetFile",
    "target_directory",
    "working_directory",
    "cwd",
)
_MOST_PATHS = 200


class Known:
    """The folders that other sessions below a root were held in, learned once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: list[str] | None = None

    def folders(self) -> list[str]:
        if self._folders is None:
            beside = (*self._root.glob("chats/*/*/meta.json"), *self._root.glob("acp-sessions/*/meta.json"))
            named = (read_sidecar(path).text("cwd") for path in sorted(beside))
            self._folders = list(dict.fromkeys(cwd for cwd in named if cwd))
        return self._folders


def read_transcript(path: Path, known: Known) -> Iterator[Item]:
    """A session as its transcript tells it."""
    tally = Tally()
    parent = path.parent.parent.name if path.parent.name == "subagents" else None
    agent_id = path.stem if parent else None
    yield Opening(source=SOURCE, id=path.stem, store="transcript", agent_id=agent_id, parent_id=parent)
    read: Callable[..., Iterator[Item]] = (
        transcript_text.tell if path.suffix == ".txt" else transcript_lines.tell
    )
    first: datetime | None = None
    mentioned: dict[str, None] = {}
    is_begun = False
    try:
        for item in read(path, tally=tally, agent_id=agent_id):
            if isinstance(item, Message):
                is_begun = True
                first = first or item.timestamp
                if item.tool is not None and len(mentioned) < _MOST_PATHS:
                    mentioned |= dict.fromkeys(_paths(item.tool.params))
            yield item
    except OSError as error:
        yield Problem(Origin(str(path), "file"), f"cannot be read: {error.strerror}")
    written = _written_at(path)
    yield Closing(
        workspace=workspace.of_project(_slug(path), known.folders(), mentioned),
        created_at=first or written,
        created_at_source="stored" if first else "file" if written else None,
        updated_at=written,
        completeness="lossy",
        reasons=(_REASON,),
        visibility="listed" if is_begun else "draft",
        metadata={"project": _slug(path)},
    )
    yield tally


def _slug(path: Path) -> str:
    """The name of the project's folder, which is made from the workspace's path and cannot be turned back."""
    parts = path.parts
    if "agent-transcripts" not in parts:
        return ""
    at = len(parts) - 1 - parts[::-1].index("agent-transcripts")
    return parts[at - 1] if at else ""


def _paths(params: dict[str, Any]) -> list[str]:
    return [value for key in _PATH_PARAMS if isinstance(value := params.get(key), str)]


def _written_at(path: Path) -> datetime | None:
    try:
        return times.from_value(path.stat().st_mtime)
    except OSError:
        return None
