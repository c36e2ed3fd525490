"""Rows of Cursor windows (`cursor_sessions`), and the end of idle sessions and windows.

A window is derived from the sessions in it. A session ends when it has had no activity for ten minutes.
"""

import sqlite3
from collections.abc import Iterable
from datetime import datetime, timedelta

from backscroll.archive.connection import transaction
from backscroll.archive.session_key import SessionKey
from backscroll.model.dates import iso

WINDOW_PLATFORM = "cursor"  # the unified schema requires a window for this platform, and for no other
_UPDATE = (
    "update cursor_sessions set (workspace_hash, workspace_name, workspace_path) ="
    " (select workspace_hash, workspace_name, workspace_path from conversations where session_id = :id"
    "  and platform = 'cursor' order by workspace_path is null, started_at, external_id limit 1),"
    " (started_at, ended_at) = (select min(min(started_at, coalesce("
    "   iif(instr(metadata, 'window_started_at'), json_extract(metadata, '$.window_started_at'), null),"
    "   started_at))), iif(count(*) = count(ended_at), max(max(updated_at, ended_at)), null)"
    "  from conversations where session_id = :id and platform = 'cursor')"
    " where id = :id and json_extract(metadata, '$.merged_from') is null"
    " and exists (select 1 from conversations where session_id = :id and platform = 'cursor')"
)
# A window imported from another program may have had more sessions than were imported.
_EXTEND_IMPORTED = (
    "update cursor_sessions set (started_at, ended_at) = (select min(started_at, min(c.started_at)),"
    "  iif(count(*) = count(c.ended_at), coalesce(max(ended_at, max(c.updated_at)), max(c.updated_at)), null)"
    "  from conversations c"
    "  where c.session_id = :id and c.platform = 'cursor')"
    " where id = :id and json_extract(metadata, '$.merged_from') is not null"
    " and exists (select 1 from conversations where session_id = :id and platform = 'cursor')"
)
# The last live session of a window has ended.
_END_IDLE = (
    "update cursor_sessions set ended_at = (select max(max(updated_at, ended_at)) from conversations"
    "  where session_id = cursor_sessions.id and platform = 'cursor')"
    " where ended_at is null and not exists (select 1 from conversations"
    "  where session_id = cursor_sessions.id and platform = 'cursor' and ended_at is null)"
    " and exists (select 1 from conversations where session_id = cursor_sessions.id and platform = 'cursor')"
)
_DELETE_EMPTY = (
    "delete from cursor_sessions where not exists (select 1 from conversations c"
    " where c.session_id = cursor_sessions.id and c.platform = 'cursor')"
    " and (json_extract(metadata, '$.merged_from') is null or :is_erasing"
    "  and id in (select id from changed_window))"
)
_CREATE = "create temp table if not exists changed_window (id text primary key)"
LIVE_TIMEOUT = timedelta(minutes=10)


def mark_windows_changed(db: sqlite3.Connection, sessions: Iterable[SessionKey]) -> None:
    """Mark the windows of sessions for an update. Call it before and after the sessions change."""
    db.execute(_CREATE)
    db.executemany(
        "insert or ignore into changed_window select session_id from conversations"
        " where platform = ? and external_id = ? and session_id is not null",
        sessions,
    )


def update_windows(db: sqlite3.Connection, *, is_erasing: bool = False) -> None:
    """Update the marked windows and delete windows without sessions.

    An imported window is deleted only if `is_erasing`, when its sessions are erased.
    """
    db.execute(_CREATE)
    changed = [{"id": id_} for (id_,) in db.execute("select id from changed_window")]
    if not changed:
        return
    db.executemany(_UPDATE, changed)
    db.executemany(_EXTEND_IMPORTED, changed)
    db.execute(_DELETE_EMPTY, {"is_erasing": is_erasing})
    db.execute("delete from changed_window")


def close_idle_sessions(db: sqlite3.Connection, now: datetime) -> None:
    """Set the end of sessions that were live when they were read and have been idle since."""
    is_idle = "ended_at is null and updated_at < ?"
    limit = [iso(now - LIVE_TIMEOUT)]
    # Check first: a reader without changes must not take the write lock.
    if db.execute(f"select 1 from conversations where {is_idle} limit 1", limit).fetchone():  # noqa: S608
        with transaction(db):
            db.execute(f"update conversations set ended_at = updated_at where {is_idle}", limit)  # noqa: S608
            end_idle_windows(db)


def end_idle_windows(db: sqlite3.Connection) -> None:
    """Set the end of windows without a live session."""
    db.execute(_END_IDLE)
