"""Which subagents a session started, and by which call."""

import sqlite3

from backscroll.archive.query.sessions import numbered
from backscroll.model import SessionSummary

__all__ = ["agents_started", "numbers_below"]


def agents_started(
    db: sqlite3.Connection, summary: SessionSummary
) -> list[tuple[SessionSummary, str | None]]:
    """Every subagent below a session, oldest first, each with the id of the call where that is known.

    Below a subagent it is those that it started itself.
    """
    parent = summary.parent_ref.partition(":")[2] if summary.parent_ref is not None else summary.id
    rows = db.execute(
        "select id, tool_call_id from subagent where platform = :platform and parent_external_id = :parent"
        " and (:agent is null or parent_agent_id = :agent)"
        " and visibility in ('listed', 'archived') order by started_at is null, started_at, id",
        {
            "platform": summary.platform,
            "parent": parent,
            "agent": summary.id if summary.parent_ref is not None else None,
        },
    ).fetchall()
    known = numbered(db, [number for number, _ in rows])
    return [(known[number], call) for number, call in rows if number in known]


def numbers_below(db: sqlite3.Connection, summary: SessionSummary) -> dict[int, str]:
    """The numbers of a session and of all subagents below it, each with its ref."""
    rows = db.execute(
        "select number, source, external_id from conversations"
        " where platform = :platform and external_id = :id"
        " union all select id, source, agent_id from subagent where platform = :platform"
        " and parent_external_id = :id and visibility in ('listed', 'archived')",
        {"platform": summary.platform, "id": summary.id},
    )
    return {number: f"{source}:{id_}" for number, source, id_ in rows}
