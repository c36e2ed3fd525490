"""Databases in the legacy schema, which has no table for windows."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_CREATE_TABLE = """
create table conversations (
    id text primary key,
    session_id text {null},
    external_session_id text {null},
    platform text,
    workspace_hash text,
    workspace_name text,
    started_at timestamp,
    ended_at timestamp,
    context text default '{{}}',
    metadata text default '{{}}',
    tool_sequence text default '[]',
    acceptance_decisions text default '[]',
    interaction_count integer default 0,
    acceptance_rate real,
    total_tokens integer default 0,
    total_changes integer default 0{more_columns}
)
"""


def conversation(index: int = 1, **values: Any) -> dict[str, Any]:
    """Return a row of a Cursor conversation; `values` replaces columns."""
    return {
        "id": f"id-{index}",
        "session_id": "curs_1",
        "external_session_id": f"composer-{index}",
        "platform": "cursor",
        "workspace_hash": "hash-a",
        "workspace_name": "ferry",
        "started_at": f"2026-03-{index % 28 + 1:02}T10:00:00Z",
        "ended_at": f"2026-03-{index % 28 + 1:02}T11:00:00Z",
        "context": json.dumps({"workspace_path": "/home/zoe/ferry"}),
        "metadata": '{"mode": "agent"}',
        "tool_sequence": '["read_file"]',
        "acceptance_decisions": "[]",
        "interaction_count": 3,
        "acceptance_rate": 0.5,
        "total_tokens": 1200,
        "total_changes": 40,
    } | values


def claude_conversation(index: int, **values: Any) -> dict[str, Any]:
    """Return a row of a Claude Code conversation; `values` replaces columns."""
    return conversation(
        index,
        **{
            "session_id": f"s-{index}",
            "external_session_id": f"claude-{index}",
            "platform": "claude_code",
            **values,
        },
    )


def write_legacy(
    path: Path,
    rows: Iterable[dict[str, Any]],
    *,
    more_columns: str = "",
    script: str = "",
    is_strict: bool = True,
    journal: str = "delete",
) -> Path:
    """Write a database with these rows. `script` runs at the end and may create other tables."""
    db = sqlite3.connect(path)
    db.execute(f"pragma journal_mode = {journal}")
    db.execute(_CREATE_TABLE.format(null="not null" if is_strict else "", more_columns=more_columns))
    for row in rows:
        names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        db.execute(f"insert into conversations ({names}) values ({marks})", list(row.values()))  # noqa: S608
    db.commit()
    db.executescript(script)
    db.close()
    return path


def generate_conversations(count: int) -> Iterable[dict[str, Any]]:
    """Yield rows of both platforms with a context of about 400 characters."""
    for index in range(count):
        context = json.dumps({"workspace_path": "/home/zoe/ferry", "note": "clock " * 60})
        if index % 3:
            yield conversation(index, session_id=f"curs_{index // 30}", context=context)
        else:
            yield claude_conversation(index, context=context)


def dump(path: Path) -> list[str]:
    """Return the content of a database as SQL statements."""
    db = sqlite3.connect(path)
    statements = list(db.iterdump())
    db.close()
    return statements


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(path)
    rows = db.execute(sql).fetchall()
    db.close()
    return rows
