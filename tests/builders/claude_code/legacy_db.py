"""Database of Claude Code 0.2, which stores messages in addition to or instead of transcripts."""

from datetime import datetime
from pathlib import Path
from typing import Any

from backscroll.testing import database
from backscroll.testing.claude_code.blocks import encode
from backscroll.testing.claude_code.transcript import Transcript
from backscroll.testing.database import Cell, RowLocation

_TABLES = {
    "base_messages": (
        "uuid TEXT PRIMARY KEY NOT NULL, parent_uuid TEXT, session_id TEXT NOT NULL,"
        " timestamp INTEGER NOT NULL, message_type TEXT NOT NULL, cwd TEXT NOT NULL,"
        " user_type TEXT NOT NULL, version TEXT NOT NULL, isSidechain INTEGER NOT NULL"
    ),
    "user_messages": (
        "uuid TEXT PRIMARY KEY NOT NULL, message TEXT NOT NULL, tool_use_result TEXT,"
        " timestamp INTEGER NOT NULL"
    ),
    "assistant_messages": (
        "uuid TEXT PRIMARY KEY NOT NULL, cost_usd REAL NOT NULL, duration_ms INTEGER NOT NULL,"
        " message TEXT NOT NULL, is_api_error_message INTEGER NOT NULL, timestamp INTEGER NOT NULL,"
        " model TEXT NOT NULL"
    ),
    "conversation_summaries": (
        "leaf_uuid TEXT PRIMARY KEY NOT NULL, summary TEXT NOT NULL, updated_at INTEGER NOT NULL"
    ),
}


def write_store(root: Path, *sessions: Transcript, rows_in: RowLocation = "main") -> Path:
    """Write messages and summaries of sessions into a new or existing database."""
    path = root / "__store.db"
    rows: dict[str, list[tuple[Cell, ...]]] = {table: [] for table in _TABLES}
    for session in sessions:
        for record in session.records:
            if isinstance(record, dict):
                _add_record(record, rows, int(session.now.timestamp()))
    schema = "".join(f"create table if not exists {table} ({columns});" for table, columns in _TABLES.items())
    statements = [
        database.insert_statement(table, [column.split()[0] for column in columns.split(", ")], rows[table])
        for table, columns in _TABLES.items()
    ]
    at = max((int(session.now.timestamp() * 1000) for session in sessions), default=None)
    database.write(path, schema, statements, rows_in=rows_in, mtime=at)
    return path


def _add_record(record: dict[str, Any], rows: dict[str, list[tuple[Cell, ...]]], now: int) -> None:
    kind, uuid = record.get("type"), record.get("uuid")
    if kind == "summary":
        rows["conversation_summaries"].append((record["leafUuid"], record["summary"], now))
    if kind not in ("user", "assistant"):
        return
    at = int(datetime.fromisoformat(record["timestamp"]).timestamp())
    rows["base_messages"].append(
        (
            uuid,
            record["parentUuid"],
            record["sessionId"],
            at,
            kind,
            record["cwd"],
            record["userType"],
            record["version"],
            int(record["isSidechain"]),
        )
    )
    message = encode(record["message"]).decode()
    if kind == "user":
        result = record.get("toolUseResult")
        encoded = encode(result).decode() if result is not None else None
        rows["user_messages"].append((uuid, message, encoded, at))
        return
    rows["assistant_messages"].append(
        (
            uuid,
            record.get("costUSD", 0.0),
            record.get("durationMs", 0),
            message,
            int(bool(record.get("isApiErrorMessage"))),
            at,
            record["message"].get("model", ""),
        )
    )
