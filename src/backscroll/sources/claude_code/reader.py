"""Read a unit with the parser of its kind, and find its side files, rows and records.

Transcripts, the prompt log and the database of version 0.2 have modules of their own; the metadata files of
Claude Desktop are parsed here.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from backscroll.model.message import Origin
from backscroll.model.problem import Problem
from backscroll.model.store import Unit
from backscroll.model.stream import Checkpoint, Closing, Item, Opening, RawRow, RecordCounts
from backscroll.model.workspace import Workspace
from backscroll.readers import jsonl, lenient_json, timestamps
from backscroll.readers.files import is_utf8
from backscroll.sources.claude_code import legacy_db, prompt_log
from backscroll.sources.claude_code.locations import LEGACY_STORE, SUBAGENTS
from backscroll.sources.claude_code.transcript.line_structs import RECORD_START, as_text
from backscroll.sources.claude_code.transcript.reader import Transcript

_field_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_record_decoder = msgspec.json.Decoder(dict[str, Any])


class UnitReader:
    """Parses units, and returns their rows and records."""

    def parse(self, unit: Unit, since: Checkpoint | None) -> Iterator[Item]:
        """Parse transcripts and the prompt log from their checkpoint on, other files from the start."""
        match unit.kind:
            case _ if unit.key or unit.kind == LEGACY_STORE:
                return legacy_db.read(unit)
            case "session" | "agent":
                return Transcript(unit, since).items()
            case "prompts":
                return prompt_log.read(unit, since)
            case "notes":
                return _read_desktop_metadata(unit)
        return _count_lines(unit)

    def raw_records(self, unit: Unit) -> Iterator[tuple[str, Any]]:
        """Yield every line with its type and, if there is one, its subtype."""
        if unit.kind == "notes":
            return  # metadata files can contain names and addresses
        if unit.key or unit.kind == LEGACY_STORE:
            yield from legacy_db.raw_records(unit)
            return
        try:
            for line in jsonl.lines(Path(unit.path), _record_decoder, starts=RECORD_START):
                for record in line.values:
                    yield _record_kind(record, unit.kind), record
        except OSError:
            return

    def raw_rows(self, unit: Unit) -> Iterator[RawRow]:
        """Return the rows of a session in the database of version 0.2."""
        return legacy_db.read_rows(Path(unit.path), unit.key)

    def side_paths(self, unit: Unit) -> Iterator[str]:
        """Yield the paths of the side files of a transcript that may exist.

        They are long tool results, tasks, workflow runs and versions of edited files. None of them is a
        message.
        """
        root, path = Path(unit.root), Path(unit.path)
        if unit.kind == "agent":
            yield str(path.with_name(f"{path.stem}.meta.json"))
        elif unit.kind == "session":
            folder = path.with_suffix("")
            yield str(folder / "custom-title.json")
            yield str(root / "todos" / f"{path.stem}.json")  # 0.2
            yield str(root / "todos" / f"{path.stem}-agent-{path.stem}.json")  # 1.0 to 2.1.15
            for one in (
                root / "tasks" / path.stem,
                folder / "tool-results",
                root / "file-history" / path.stem,
                folder / "workflows",
            ):
                yield from _list_files(str(one))
            for run in _list_files(str(folder / SUBAGENTS / "workflows")):
                yield from (name for name in _list_files(run) if name.endswith(f"{os.sep}journal.jsonl"))


def _record_kind(record: dict[str, Any], unit_kind: str) -> str:
    if unit_kind == "prompts":
        return "prompt"
    parts = [record.get("type"), record.get("subtype")]
    for name in ("attachment", "data"):
        nested = record.get(name)
        parts.append(nested.get("type") if isinstance(nested, dict) else None)
    return "/".join(part for part in parts if isinstance(part, str)) or "(no type)"


def _count_lines(unit: Unit) -> Iterator[Item]:
    """Count the lines of a run log, or of a file that is not a session."""
    counts = RecordCounts()
    kind = "run log" if unit.kind == "journal" else "line of a file that is not a session"
    for line in jsonl.lines(Path(unit.path), _field_decoder, starts=RECORD_START):
        if line.fault is not None:
            yield Problem(Origin(unit.path, f"line {line.number}"), *line.fault)
            counts.count(kind, "problems")
        elif not line.is_blank:
            counts.count(kind, "ignored")
    yield counts


def _list_files(folder: str) -> list[str]:
    """Return the files in a folder, sorted by name; none if it does not exist or is a link."""
    try:
        if stat.S_ISLNK(os.lstat(folder).st_mode):
            return []
        with os.scandir(folder) as entries:
            return sorted(entry.path for entry in entries if is_utf8(entry.name))
    except OSError:
        return []


# Metadata files of Claude Desktop, one per session that it runs with Claude Code. The conversation itself is
# in Claude Code's folder. Only the fields listed here are read, because other fields can contain names,
# addresses and settings.

_DESKTOP_TITLE = "desktop-title"  # a title source
_MAX_METADATA_BYTES = 16 * 1024 * 1024
_METADATA_RECORD = "session note"
_WORKTREE_FIELDS = {
    "origin_cwd": "originalCwd",
    "worktree_path": "worktreePath",
    "worktree_name": "worktreeName",
}


class _DesktopMetadata(msgspec.Struct, rename="camel"):
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


_metadata_decoder = msgspec.json.Decoder(_DesktopMetadata)


def _read_desktop_metadata(unit: Unit) -> Iterator[Item]:
    """Yield the session of a metadata file; nothing if it was never started."""
    counts = RecordCounts()
    metadata = _load_metadata(Path(unit.path))
    if metadata is None:
        yield Problem(Origin(unit.path, "file"), "not-json", "is not session metadata: no JSON object")
        counts.count(_METADATA_RECORD, "problems")
    else:
        id_ = as_text(metadata.cli_session_id)
        if id_ is not None:
            yield Opening(source=unit.source, id=id_, store="notes")
            yield _build_closing(metadata)
        counts.count(_METADATA_RECORD, "ignored")
    yield counts


def _load_metadata(path: Path) -> _DesktopMetadata | None:
    with path.open("rb") as file:
        data = file.read(_MAX_METADATA_BYTES)
    try:
        return _metadata_decoder.decode(data)
    except lenient_json.FAILURES:
        pass
    try:
        document = lenient_json.load(data)
    except lenient_json.FAILURES:
        return None
    if not isinstance(document, dict):
        return None
    names = zip(_DesktopMetadata.__struct_fields__, _DesktopMetadata.__struct_encode_fields__, strict=True)
    return _DesktopMetadata(**{field: document.get(name) for field, name in names})


def _build_closing(metadata: _DesktopMetadata) -> Closing:
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
        title_source=_DESKTOP_TITLE if title else None,
        workspace=Workspace(folder, evidence="Claude Desktop's notes") if folder else None,
        created_at=created_at,
        created_at_source="stored" if created_at else None,
        updated_at=last_activity_at or created_at,
        completeness="lossy",
        reasons=(reason,),
        visibility="archived" if metadata.is_archived is True else "listed",
        metadata=_session_metadata(metadata),
    )


def _session_metadata(metadata: _DesktopMetadata) -> dict[str, Any]:
    names = {name: as_text(getattr(metadata, field)) for field, name in _WORKTREE_FIELDS.items()}
    worktree = {name: value for name, value in names.items() if value}
    found: dict[str, Any] = {
        "desktop_session_id": as_text(metadata.session_id),
        "desktop_model": as_text(metadata.model),
        "worktree": worktree if "worktreePath" in worktree else None,
    }
    return {name: value for name, value in found.items() if value is not None}
