"""Read the metadata files of Claude Desktop, one per session that it runs with Claude Code.

The conversation itself is in Claude Code's folder. Only the fields listed here are read, because other fields
can contain names, addresses and settings.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder

from backscroll.model.message import Origin
from backscroll.model.problem import Problem
from backscroll.model.store import Unit
from backscroll.model.stream import Closing, Item, Opening, RecordCounts
from backscroll.model.workspace import Workspace
from backscroll.readers import lenient_json, timestamps
from backscroll.sources.claude_code.transcript.line_structs import as_text

DESKTOP_TITLE = "desktop-title"  # a title source
MAX_FILE_BYTES = 16 * 1024 * 1024
_RECORD_KIND = "session note"
_WORKTREE_FIELDS = {
    "origin_cwd": "originalCwd",
    "worktree_path": "worktreePath",
    "worktree_name": "worktreeName",
}


class _Metadata(Struct, rename="camel"):
    """Content of a metadata file. Every field accepts any JSON value."""

    session_id: Any = None
    cli_session_id: Any = None
    cwd: Any = None
    origin_cwd: Any = None
    worktree_path: Any = None
    worktree_name: Any = None
    user_selected_folders: Any = None  # only in agent mode, which runs in another folder
    created_at: Any = None
    last_activity_at: Any = None
    model: Any = None
    title: Any = None
    is_archived: Any = None
    transcript_unavailable: Any = None


_decoder = Decoder(_Metadata)


def read(unit: Unit) -> Iterator[Item]:
    """Yield the session of a metadata file; nothing if it was never started."""
    counts = RecordCounts()
    metadata = _load(Path(unit.path))
    if metadata is None:
        yield Problem(Origin(unit.path, "file"), "not-json", "is not session metadata: no JSON object")
        counts.count(_RECORD_KIND, "problems")
    else:
        id_ = as_text(metadata.cli_session_id)
        if id_ is not None:
            yield Opening(source=unit.source, id=id_, store="notes")
            yield _build_closing(metadata)
        counts.count(_RECORD_KIND, "ignored")
    yield counts


def _load(path: Path) -> _Metadata | None:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES)
    try:
        return _decoder.decode(data)
    except lenient_json.FAILURES:
        pass
    try:
        document = lenient_json.load(data)
    except lenient_json.FAILURES:
        return None
    if not isinstance(document, dict):
        return None
    names = zip(_Metadata.__struct_fields__, _Metadata.__struct_encode_fields__, strict=True)
    return _Metadata(**{field: document.get(name) for field, name in names})


def _build_closing(metadata: _Metadata) -> Closing:
    created_at = timestamps.from_value(metadata.created_at)
    last_activity_at = timestamps.from_value(metadata.last_activity_at)
    selected = metadata.user_selected_folders if isinstance(metadata.user_selected_folders, list) else []
    folders = map(as_text, (*selected, metadata.cwd, metadata.worktree_path, metadata.origin_cwd))
    folder = next(filter(None, folders), None)
    title = (as_text(metadata.title) or "").strip() or None
    if metadata.transcript_unavailable is True:
        reason = "Claude Desktop reports that the transcript is unavailable"
    else:
        reason = "only what Claude Desktop notes of it is here"
    return Closing(
        title=title,
        title_source=DESKTOP_TITLE if title else None,
        workspace=Workspace(folder, evidence="Claude Desktop's notes") if folder else None,
        created_at=created_at,
        created_at_source="stored" if created_at else None,
        updated_at=last_activity_at or created_at,
        completeness="lossy",
        reasons=(reason,),
        visibility="archived" if metadata.is_archived is True else "listed",
        metadata=_session_metadata(metadata),
    )


def _session_metadata(metadata: _Metadata) -> dict[str, Any]:
    names = {name: as_text(getattr(metadata, field)) for field, name in _WORKTREE_FIELDS.items()}
    worktree = {name: value for name, value in names.items() if value}
    found: dict[str, Any] = {
        "desktop_session_id": as_text(metadata.session_id),
        "desktop_model": as_text(metadata.model),
        "worktree": worktree if "worktreePath" in worktree else None,
    }
    return {name: value for name, value in found.items() if value is not None}
