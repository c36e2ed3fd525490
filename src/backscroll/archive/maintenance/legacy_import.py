"""Import conversations from another program's upgraded database.

They have no messages, so their completeness is ``lossy``. Sessions that the archive already contains stay
unchanged. A session that is read from the tool's own files later replaces the imported one.
"""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.archive.connection import connect, transaction
from backscroll.archive.derive.cursor_windows import WINDOW_PLATFORM
from backscroll.archive.derive.session_rows import conversation_id
from backscroll.archive.maintenance.legacy_upgrade import JSON_COLUMNS, open_existing
from backscroll.archive.write.exclusions import Exclusions
from backscroll.errors import DatabaseUnreadableError
from backscroll.model.dates import iso
from backscroll.model.workspace import UNKNOWN_WORKSPACE, Workspace
from backscroll.readers.timestamps import from_value

_SOURCES = {"claude_code": "claude-code", "cursor": "cursor"}  # of the platforms that the program knew
_EXPECTED: dict[str, type] = dict(zip(JSON_COLUMNS, (dict, dict, list, list), strict=True))


class LegacyImport(Struct, frozen=True):
    """Counts of an import."""

    sessions: int
    known: int  # skipped: already in the archive
    kept_out: int  # skipped: forgotten, or in an excluded workspace
    windows: int  # new in the archive


def import_legacy(archive: Path, file: Path, exclusions: Exclusions) -> LegacyImport:
    """Import the conversations that the archive does not contain, in one transaction."""
    written_at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    try:
        with closing(open_existing(file, mode="ro")) as other, closing(connect(archive)) as db:
            other.row_factory = sqlite3.Row
            other.execute("begin")
            with transaction(db):
                return _import(db, other, file.name, written_at, exclusions)
    except sqlite3.Error as error:
        raise DatabaseUnreadableError(
            f"{file} could not be imported: {error}. The archive was not changed.", file
        ) from error


def _import(
    db: sqlite3.Connection, other: sqlite3.Connection, name: str, written_at: datetime, exclusions: Exclusions
) -> LegacyImport:
    windows = {row["id"]: dict(row) for row in other.execute("select * from cursor_sessions")}
    window_ids: dict[str, str] = {}
    number = db.execute("select coalesce(max(number), 0) from conversations").fetchone()[0]
    imported = known = kept_out = new_windows = 0
    for row in map(dict, other.execute("select * from conversations order by started_at, id")):
        window = windows.get(row["session_id"], {})
        values = _values(row, window.get("workspace_path"), name, written_at)
        path = values["workspace_path"]
        if exclusions.is_excluded(Workspace(path) if path else None) or (
            (row["platform"], row["external_id"]) in exclusions.forgotten
        ):
            kept_out += 1
            continue
        if window and window["id"] not in window_ids:
            window_ids[window["id"]], is_new = _import_window(db, window, name, written_at)
            new_windows += is_new
        values |= {"session_id": window_ids.get(row["session_id"]), "number": number + 1}
        columns, marks = ", ".join(values), ", ".join("?" * len(values))
        done = db.execute(
            f"insert into conversations ({columns}) values ({marks})"  # noqa: S608 - names are ours
            " on conflict (external_id, platform) do nothing",
            list(values.values()),
        ).rowcount
        imported += done
        known += not done
        number += done
    return LegacyImport(imported, known, kept_out, new_windows)


def _import_window(
    db: sqlite3.Connection, row: dict[str, Any], name: str, written_at: datetime
) -> tuple[str, bool]:
    """Insert or extend a window. Return its id and whether it is new."""
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
    id_ = conversation_id(WINDOW_PLATFORM, external)
    hash_, named, path = _workspace(
        row.get("workspace_path"), row.get("workspace_hash"), row.get("workspace_name")
    )
    metadata = _decode(row.get("metadata"), dict) or {}
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
    """Return hash, name and path. Without a path, keep the other program's hash."""
    if isinstance(path, str) and path:
        workspace = Workspace(path)
        return workspace.hash, str(name) if name else workspace.name, path
    return str(hash_) if hash_ else UNKNOWN_WORKSPACE, str(name) if name else None, None


def _values(row: dict[str, Any], window_path: str | None, name: str, written_at: datetime) -> dict[str, Any]:
    """Return the values of a row. Values that do not fit their column go into the metadata."""
    parts = {column: _decode(row.get(column), type_) for column, type_ in _EXPECTED.items()}
    context, metadata = parts["context"] or {}, dict(parts["metadata"] or {})
    invalid = {
        f"merged_{column}": str(row[column])
        for column, value in parts.items()
        if value is None and row.get(column) is not None
    }
    started, ended = from_value(row["started_at"]), from_value(row.get("ended_at"))
    updated = max(filter(None, (started, ended)), default=written_at)
    path = context.get("workspace_path") or window_path
    hash_, named, path = _workspace(path, row.get("workspace_hash"), row.get("workspace_name"))
    metadata |= invalid | {
        "merged_from": name,
        "merged_id": str(row["id"]),
        "started_at_source": "stored" if started else "file",
        "reasons": ["imported from another program's database, which contains no messages"],
    }
    if row.get("workspace_hash") not in (None, hash_):
        metadata["merged_workspace_hash"] = str(row["workspace_hash"])
    tokens = row.get("total_tokens") or None  # 0 means that nothing was counted
    if tokens is None:
        metadata["are_tokens_unknown"] = True
    return {
        "id": conversation_id(row["platform"], row["external_id"]),
        "external_id": row["external_id"],
        "platform": row["platform"],
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
        "interaction_count": _to_int(row.get("interaction_count")),
        "acceptance_rate": _to_float(row.get("acceptance_rate")),
        "total_tokens": tokens if isinstance(tokens, int) else None,
        "total_changes": _to_int(row.get("total_changes")),
        "source": _SOURCES.get(row["platform"]),  # null violates the schema, and the import fails
        "completeness": "lossy",
        "visibility": "listed",
    }


def _decode(value: Any, type_: type) -> Any:
    """Return the decoded JSON if it has this type, else None."""
    try:
        return msgspec.json.decode(value, type=type_) if isinstance(value, str) else None
    except msgspec.DecodeError:
        return None


def _to_int(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _to_float(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
