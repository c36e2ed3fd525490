"""Conversations that only an upgraded database of another program tells of, taken into the archive.

They have no messages, and say so: they are ``lossy``. A session that the archive has stays as it is,
and one that a tool's own files tell of later takes the place of what was adopted.
"""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.archive.connection import connect, transaction
from backscroll.archive.derive.session_rows import conversation_id
from backscroll.archive.maintenance.backup import open_existing
from backscroll.archive.maintenance.legacy_schema import JSON_COLUMNS
from backscroll.archive.write.exclusions import Exclusions
from backscroll.errors import DatabaseUnreadableError
from backscroll.model import UNKNOWN_WORKSPACE, Workspace
from backscroll.model.dates import iso
from backscroll.readers.timestamps import from_value

__all__ = ["LegacyImport", "import_legacy"]

_SOURCES = {"claude_code": "claude-code", "cursor": "cursor"}
_EXPECTED: dict[str, type] = dict(zip(JSON_COLUMNS, (dict, dict, list, list), strict=True))


class LegacyImport(Struct, frozen=True):
    """What was taken from a database into the archive."""

    sessions: int
    known: int  # left out, because the archive has them
    kept_out: int  # forgotten before, or of a workspace that is excluded
    windows: int  # that the archive did not have


def import_legacy(archive: Path, file: Path, exclusions: Exclusions) -> LegacyImport:
    """Take over what the archive does not have, all of it or nothing. The file is only read."""
    written_at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    try:
        with closing(open_existing(file, mode="ro")) as other, closing(connect(archive)) as db:
            other.row_factory = sqlite3.Row
            other.execute("begin")
            with transaction(db):
                return _adopt(db, other, file.name, written_at, exclusions)
    except sqlite3.Error as error:
        raise DatabaseUnreadableError(
            f"{file} could not be taken into the archive: {error}. The archive is as it was.", file
        ) from error


def _adopt(
    db: sqlite3.Connection, other: sqlite3.Connection, name: str, written_at: datetime, exclusions: Exclusions
) -> LegacyImport:
    windows = {row["id"]: dict(row) for row in other.execute("select * from cursor_sessions")}
    taken_windows: dict[str, str] = {}
    number = db.execute("select coalesce(max(number), 0) from conversations").fetchone()[0]
    taken = known = kept_out = new_windows = 0
    for told in map(dict, other.execute("select * from conversations order by started_at, id")):
        window = windows.get(told["session_id"], {})
        values = _values(told, window.get("workspace_path"), name, written_at)
        path = values["workspace_path"]
        if exclusions.is_excluded(Workspace(path) if path else None) or (
            (told["platform"], told["external_id"]) in exclusions.forgotten
        ):
            kept_out += 1
            continue
        if window and window["id"] not in taken_windows:
            taken_windows[window["id"]], is_new = _take_window(db, window, name, written_at)
            new_windows += is_new
        values |= {"session_id": taken_windows.get(told["session_id"]), "number": number + 1}
        columns, marks = ", ".join(values), ", ".join("?" * len(values))
        done = db.execute(
            f"insert into conversations ({columns}) values ({marks})"  # noqa: S608 - names are ours
            " on conflict (external_id, platform) do nothing",
            list(values.values()),
        ).rowcount
        taken += done
        known += not done
        number += done
    return LegacyImport(taken, known, kept_out, new_windows)


def _take_window(
    db: sqlite3.Connection, row: dict[str, Any], name: str, written_at: datetime
) -> tuple[str, bool]:
    """A window's id in the archive, and whether it is new there."""
    external = str(row["external_session_id"])
    known = db.execute("select id from cursor_sessions where external_session_id = ?", [external]).fetchone()
    started = from_value(row["started_at"]) or written_at
    ended = from_value(row.get("ended_at"))
    if known is not None:
        db.execute(
            "update cursor_sessions set started_at = min(started_at, ?),"
            " ended_at = coalesce(max(ended_at, ?), ended_at) where id = ?",
            [iso(started), iso(ended), known[0]],
        )
        return str(known[0]), False
    id_ = conversation_id("cursor", external)
    hash_, named, path = _workspace(
        row.get("workspace_path"), row.get("workspace_hash"), row.get("workspace_name")
    )
    metadata = _decoded(row.get("metadata"), dict) or {}
    db.execute(
        "insert into cursor_sessions values (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            id_,
            external,
            hash_,
            named,
            path,
            iso(started),
            iso(ended),
            _json(metadata | {"merged_from": name}),
        ],
    )
    return id_, True


def _workspace(path: Any, hash_: Any, name: Any) -> tuple[str, str | None, str | None]:
    """Hash, name and path: the archive's own hash where the path is known, else the other program's."""
    if isinstance(path, str) and path:
        workspace = Workspace(path)
        return workspace.hash, str(name) if name else workspace.name, path
    return str(hash_) if hash_ else UNKNOWN_WORKSPACE, str(name) if name else None, None


def _values(told: dict[str, Any], window_path: str | None, name: str, written_at: datetime) -> dict[str, Any]:
    """A row of the archive. What does not fit its columns stands in the metadata."""
    parts = {column: _decoded(told.get(column), type_) for column, type_ in _EXPECTED.items()}
    context, metadata = parts["context"] or {}, dict(parts["metadata"] or {})
    spoiled = {
        f"merged_{column}": str(told[column])
        for column, value in parts.items()
        if value is None and told.get(column) is not None
    }
    started, ended = from_value(told["started_at"]), from_value(told.get("ended_at"))
    updated = max(filter(None, (started, ended)), default=written_at)
    path = context.get("workspace_path") or window_path
    hash_, named, path = _workspace(path, told.get("workspace_hash"), told.get("workspace_name"))
    metadata |= spoiled | {
        "merged_from": name,
        "merged_id": str(told["id"]),
        "started_at_source": "stored" if started else "file",
        "reasons": ["only another program's database tells of it, and that keeps no messages"],
    }
    if told.get("workspace_hash") not in (None, hash_):
        metadata["merged_workspace_hash"] = str(told["workspace_hash"])
    tokens = told.get("total_tokens") or None  # 0 is what a row had that nobody counted for
    if tokens is None:
        metadata["are_tokens_unknown"] = True
    return {
        "id": conversation_id(told["platform"], told["external_id"]),
        "external_id": told["external_id"],
        "platform": told["platform"],
        "workspace_hash": hash_,
        "workspace_name": named,
        "workspace_path": path,
        "started_at": iso(started or written_at),
        "ended_at": iso(updated),
        "updated_at": iso(updated),
        "context": _json(context),
        "metadata": _json(metadata),
        "tool_sequence": _json(parts["tool_sequence"] or []),
        "acceptance_decisions": _json(parts["acceptance_decisions"] or []),
        "interaction_count": _whole(told.get("interaction_count")),
        "acceptance_rate": _share(told.get("acceptance_rate")),
        "total_tokens": tokens if isinstance(tokens, int) else None,
        "total_changes": _whole(told.get("total_changes")),
        "source": _SOURCES.get(told["platform"]),  # without one, the archive refuses the row
        "completeness": "lossy",
        "visibility": "listed",
    }


def _decoded(value: Any, type_: type) -> Any:
    """JSON of this type, or None."""
    try:
        return msgspec.json.decode(value, type=type_) if isinstance(value, str) else None
    except msgspec.DecodeError:
        return None


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _share(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
