"""Windows of Cursor, told by the sessions that were held in them."""

import sqlite3
from collections.abc import Iterable

from backscroll.archive.session_key import SessionKey

__all__ = ["note_windows", "settle_windows"]

_TOLD = (
    "update cursor_sessions set (workspace_hash, workspace_name, workspace_path) ="
    " (select workspace_hash, workspace_name, workspace_path from conversations where session_id = :id"
    "  and platform = 'cursor' order by workspace_path is null, started_at, external_id limit 1),"
    " (started_at, ended_at) = (select min(started_at), max(updated_at) from conversations"
    "  where session_id = :id and platform = 'cursor')"
    " where id = :id and json_extract(metadata, '$.merged_from') is null"
    " and exists (select 1 from conversations where session_id = :id and platform = 'cursor')"
)
# Another program may have known of more sessions than it told of.
_MERGED = (
    "update cursor_sessions set (started_at, ended_at) = (select min(started_at, min(c.started_at)),"
    "  coalesce(max(ended_at, max(c.updated_at)), max(c.updated_at)) from conversations c"
    "  where c.session_id = :id and c.platform = 'cursor')"
    " where id = :id and json_extract(metadata, '$.merged_from') is not null"
    " and exists (select 1 from conversations where session_id = :id and platform = 'cursor')"
)
_EMPTY = (
    "delete from cursor_sessions where not exists (select 1 from conversations c"
    " where c.session_id = cursor_sessions.id and c.platform = 'cursor')"
    " and (json_extract(metadata, '$.merged_from') is null or :is_erasing"
    "  and id in (select id from touched_window))"
)


def note_windows(db: sqlite3.Connection, sessions: Iterable[SessionKey]) -> None:
    """Note that the windows of sessions are to be told anew; before and after the sessions are."""
    db.execute("create temp table if not exists touched_window (id text primary key)")
    db.executemany(
        "insert or ignore into touched_window select session_id from conversations"
        " where platform = ? and external_id = ? and session_id is not null",
        sessions,
    )


def settle_windows(db: sqlite3.Connection, *, is_erasing: bool = False) -> None:
    """Tell the noted windows anew, and remove those in which no session was held.

    One that another program told of goes only when its sessions are erased.
    """
    db.execute("create temp table if not exists touched_window (id text primary key)")
    touched = [{"id": id_} for (id_,) in db.execute("select id from touched_window")]
    if not touched:
        return
    db.executemany(_TOLD, touched)
    db.executemany(_MERGED, touched)
    db.execute(_EMPTY, {"is_erasing": is_erasing})
    db.execute("delete from touched_window")
