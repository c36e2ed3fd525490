"""Which subagents a session started, and by which call."""

import sqlite3

from backscroll.archive.derive import Session
from backscroll.archive.reading import by_number
from backscroll.model import SessionSummary

__all__ = ["agents_started"]


def agents_started(db: sqlite3.Connection, session: Session) -> list[tuple[SessionSummary, str | None]]:
    """Every subagent below a session, oldest first, each with the id of the call where that is known."""
    rows = db.execute(
        "select number, tool_call_id from subagent where platform = ? and parent_id = ?"
        " and visibility in ('listed', 'archived') order by started_at is null, started_at, number",
        [session.platform, session.id],
    ).fetchall()
    found = ((by_number(db, number), call) for number, call in rows)
    return [(summary, call) for summary, call in found if summary is not None]
