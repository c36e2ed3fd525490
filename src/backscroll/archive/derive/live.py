"""When a session is over: nothing has happened in it for a while."""

import sqlite3
from datetime import datetime, timedelta

from backscroll.model.dates import iso

__all__ = ["LIVE", "end_sessions"]

LIVE = timedelta(minutes=10)


def end_sessions(db: sqlite3.Connection, now: datetime) -> None:
    """Sessions that were still going on when they were read, and have been quiet since, have ended."""
    quiet = "ended_at is null and updated_at < ?"
    limit = [iso(now - LIVE)]
    # Whoever only looks needs nobody's leave to write.
    if db.execute(f"select 1 from conversations where {quiet} limit 1", limit).fetchone():  # noqa: S608
        db.execute(f"update conversations set ended_at = updated_at where {quiet}", limit)  # noqa: S608
