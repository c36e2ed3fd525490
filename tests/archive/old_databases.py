"""Databases in the schema before windows had a table of their own."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["claude", "contents", "conversation", "many", "query", "write_old"]

_TABLE = """
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
    total_changes integer default 0{more}
)
"""


def conversation(number: int = 1, **changed: Any) -> dict[str, Any]:
    """A row of Cursor's; what is named is otherwise."""
    return {
        "id": f"id-{number}",
        "session_id": "curs_1",
        "external_session_id": f"composer-{number}",
        "platform": "cursor",
        "workspace_hash": "hash-a",
        "workspace_name": "ferry",
        "started_at": f"2026-03-{number % 28 + 1:02}T10:00:00Z",
        "ended_at": f"2026-03-{number % 28 + 1:02}T11:00:00Z",
        "context": json.dumps({"workspace_path": "/home/zoe/ferry"}),
        "metadata": '{"mode": "agent"}',
        "tool_sequence": '["read_file"]',
        "acceptance_decisions": "[]",
        "interaction_count": 3,
        "acceptance_rate": 0.5,
        "total_tokens": 1200,
        "total_changes": 40,
    } | changed


def claude(number: int, **changed: Any) -> dict[str, Any]:
    """A row of Claude Code's."""
    return conversation(
        number,
        **{
            "session_id": f"s-{number}",
            "external_session_id": f"claude-{number}",
            "platform": "claude_code",
            **changed,
        },
    )


def write_old(
    path: Path,
    rows: Iterable[dict[str, Any]],
    *,
    more: str = "",
    script: str = "",
    is_strict: bool = True,
    journal: str = "delete",
) -> Path:
    """Write a database: the rows, further columns, and whatever else a script makes."""
    db = sqlite3.connect(path)
    db.execute(f"pragma journal_mode = {journal}")
    db.execute(_TABLE.format(null="not null" if is_strict else "", more=more))
    for row in rows:
        names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        db.execute(f"insert into conversations ({names}) values ({marks})", list(row.values()))  # noqa: S608
    db.commit()
    db.executescript(script)
    db.close()
    return path


def many(count: int) -> Iterable[dict[str, Any]]:
    """Rows of both platforms, with something in them."""
    for number in range(count):
        context = json.dumps({"workspace_path": "/home/zoe/ferry", "note": "clock " * 60})
        if number % 3:
            yield conversation(number, session_id=f"curs_{number // 30}", context=context)
        else:
            yield claude(number, context=context)


def contents(path: Path) -> list[str]:
    """Everything a database says, as SQL."""
    db = sqlite3.connect(path)
    told = list(db.iterdump())
    db.close()
    return told


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    db = sqlite3.connect(path)
    rows = db.execute(sql).fetchall()
    db.close()
    return rows
