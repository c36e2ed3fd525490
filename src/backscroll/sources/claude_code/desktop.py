"""Metadata files of Claude Desktop, one per session that it runs with Claude Code.

The conversation itself is in Claude Code's folder. Only the fields listed here are read: others can contain
names, addresses and settings.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder

from backscroll.model import Closing, Item, Opening, Origin, Problem, RecordCounts, Unit, Workspace
from backscroll.readers import lenient_json, timestamps
from backscroll.sources.claude_code.transcript.line_types import text

__all__ = ["DESKTOP_TITLE", "read"]

DESKTOP_TITLE = "desktop-title"  # title source of titles from these files
MAX_FILE_BYTES = 16 * 1024 * 1024
_KIND = "session note"
_WORKTREE = {"origin_cwd": "originalCwd", "worktree_path": "worktreePath", "worktree_name": "worktreeName"}


class _Note(Struct, rename="camel"):
    session_id: Any = None
    cli_session_id: Any = None
    cwd: Any = None
    origin_cwd: Any = None
    worktree_path: Any = None
    worktree_name: Any = None
    user_selected_folders: Any = None  # of the agent mode, which runs in another folder
    created_at: Any = None
    last_activity_at: Any = None
    model: Any = None
    title: Any = None
    is_archived: Any = None
    transcript_unavailable: Any = None


_decoder = Decoder(_Note)


def read(unit: Unit) -> Iterator[Item]:
    """Yield the session of a file; none if it never started."""
    tally = RecordCounts()
    note = _load(Path(unit.path))
    if note is None:
        yield Problem(Origin(unit.path, "file"), "not-json", "is not a note of a session: no JSON object")
        tally.count(_KIND, "problems")
    else:
        id_ = text(note.cli_session_id)
        if id_ is not None:
            yield Opening(source=unit.source, id=id_, store="notes")
            yield _closing(note)
        tally.count(_KIND, "ignored")
    yield tally


def _load(path: Path) -> _Note | None:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES)
    try:
        return _decoder.decode(data)
    except lenient_json.FAILURES:
        pass
    try:
        found = lenient_json.load(data)
    except lenient_json.FAILURES:
        return None
    if not isinstance(found, dict):
        return None
    names = zip(_Note.__struct_fields__, _Note.__struct_encode_fields__, strict=True)
    return _Note(**{field: found.get(name) for field, name in names})


def _closing(note: _Note) -> Closing:
    begun, ended = timestamps.from_value(note.created_at), timestamps.from_value(note.last_activity_at)
    chosen = note.user_selected_folders if isinstance(note.user_selected_folders, list) else []
    named = map(text, (*chosen, note.cwd, note.worktree_path, note.origin_cwd))
    folder = next(filter(None, named), None)
    title = (text(note.title) or "").strip() or None
    reason = (
        "Claude Desktop says that its transcript is gone" if note.transcript_unavailable is True else None
    )
    return Closing(
        title=title,
        title_source=DESKTOP_TITLE if title else None,
        workspace=Workspace(folder, evidence="Claude Desktop's notes") if folder else None,
        created_at=begun,
        created_at_source="stored" if begun else None,
        updated_at=ended or begun,
        completeness="lossy",
        reasons=(reason or "only what Claude Desktop notes of it is here",),
        visibility="archived" if note.is_archived is True else "listed",
        metadata=_metadata(note),
    )


def _metadata(note: _Note) -> dict[str, Any]:
    named = {name: text(getattr(note, field)) for field, name in _WORKTREE.items()}
    worktree = {name: value for name, value in named.items() if value}
    found: dict[str, Any] = {
        "desktop_session_id": text(note.session_id),
        "desktop_model": text(note.model),
        "worktree": worktree if "worktreePath" in worktree else None,
    }
    return {name: value for name, value in found.items() if value is not None}
