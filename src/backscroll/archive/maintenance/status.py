"""Counts and sizes of the archive."""

import sqlite3
from pathlib import Path

from msgspec import Struct

__all__ = ["Status", "read_status"]

# Small files that belong to a stored file are stored like rows, but are none.
_IS_NO_SIDE_FILE = "unit_id not in (select unit_id from raw_segment)"


class Status(Struct):
    """Counts and sizes of the archive."""

    path: str
    size: int
    schema: int
    sessions: int
    subagents: int
    session_messages: int  # active messages except system messages, without subagents
    subagent_messages: int  # the same, of subagents
    messages: int  # all that are stored, with system messages, abandoned branches and copies
    units: int
    gone: int  # units that the tools no longer have
    problems: int
    kept_bytes: int  # original files
    kept_size: int  # the same, compressed
    rows: int  # original database rows
    rows_bytes: int
    rows_size: int  # the same, compressed


def read_status(db: sqlite3.Connection, path: Path) -> Status:
    """Count rows and bytes."""

    def value(query: str) -> int:
        return int(db.execute(query).fetchone()[0])

    sessions, session_messages = db.execute(
        "select count(*), coalesce(sum(message_count), 0) from conversations"
        " where visibility in ('listed', 'archived')"
    ).fetchone()
    # A resumed session repeats inlined subagents. Each counts once.
    subagents, subagent_messages = db.execute(
        "select count(*), coalesce(sum(message_count), 0) from (select max(message_count) as message_count"
        " from subagent where visibility in ('listed', 'archived') group by platform, agent_id)"
    ).fetchone()
    return Status(
        path=str(path),
        size=sum(file.stat().st_size for file in path.parent.glob(f"{path.name}*")),
        schema=value("pragma user_version"),
        sessions=sessions,
        subagents=subagents,
        session_messages=session_messages,
        subagent_messages=subagent_messages,
        messages=value("select coalesce(sum(message_count), 0) from fragment where status = 'current'"),
        units=value("select count(*) from unit"),
        gone=value("select count(*) from unit where is_gone"),
        problems=value("select count(*) from problem"),
        kept_bytes=value("select coalesce(sum(size), 0) from raw_segment"),
        kept_size=value("select coalesce(sum(length(body)), 0) from raw_segment"),
        rows=value(f"select count(*) from raw_row where {_IS_NO_SIDE_FILE}"),  # noqa: S608
        rows_bytes=value(f"select coalesce(sum(size), 0) from raw_row where {_IS_NO_SIDE_FILE}"),  # noqa: S608
        rows_size=value("select coalesce(sum(length(body)), 0) from blob_chunk"),
    )
