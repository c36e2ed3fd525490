"""Live sessions: a session ends when it has had no activity for ten minutes."""

import sqlite3
from datetime import datetime, timedelta

from backscroll.archive.connection import transaction
from backscroll.archive.derive.cursor_windows import end_idle_windows
from backscroll.model.dates import iso

LIVE_TIMEOUT = timedelta(minutes=10)


def close_idle_sessions(db: sqlite3.Connection, now: datetime) -> None:
    """Set the end of sessions that were live when they were read and have been idle since."""
    is_idle = "ended_at is null and updated_at < ?"
    limit = [iso(now - LIVE_TIMEOUT)]
    # Check first: a reader without changes must not take the write lock.
    if db.execute(f"select 1 from conversations where {is_idle} limit 1", limit).fetchone():  # noqa: S608
        with transaction(db):
            db.execute(f"update conversations set ended_at = updated_at where {is_idle}", limit)  # noqa: S608
            end_idle_windows(db)
