"""What became of sessions, in a sentence and as JSON."""

from datetime import datetime, timedelta, tzinfo
from typing import Any

from backscroll.model.dates import iso
from backscroll.model.events import EventCode, EventLog

__all__ = ["events_document", "events_line"]


def events_line(ledger: EventLog, now: datetime, *, zone: tzinfo | None = None) -> str | None:
    """For example ``12 sessions vanished since Tuesday, all kept; 1 came back``; None when nothing happened.

    Days are those of this machine unless another zone is named.
    """
    if not ledger.fates:
        return None
    since = _since(ledger.fates[0].at.astimezone(zone), now.astimezone(zone)) if ledger.since else ""
    parts: list[str] = []
    every: tuple[EventCode, ...] = ("vanished", "overwritten", "came_back")
    for what in every:
        number = ledger.count(what)
        if number:
            noun = "" if parts else " session" if number == 1 else " sessions"
            parts.append(f"{number:,}{noun} {_said(what, number, '' if parts else since)}")
    return "; ".join(parts)


def _said(what: EventCode, number: int, since: str) -> str:
    match what:
        case "vanished":
            return f"vanished{since}, {'and is' if number == 1 else 'all'} kept"
        case "overwritten":
            were = "was" if number == 1 else "were"
            return f"{were} overwritten with an older state{since}, both kept"
        case "came_back":
            return f"came back{since}"


def _since(at: datetime, now: datetime) -> str:
    """The day it began, as people say it within a week."""
    if at.date() == now.date():
        return " today"
    if at.date() == now.date() - timedelta(days=1):
        return " since yesterday"
    return f" since {at:%A}" if now - at < timedelta(days=7) else f" since {at:%Y-%m-%d}"


def events_document(ledger: EventLog) -> dict[str, Any]:
    """The same for programs."""
    return {
        "since": iso(ledger.since),
        "vanished": ledger.count("vanished"),
        "overwritten": ledger.count("overwritten"),
        "came_back": ledger.count("came_back"),
        "sessions": [
            {
                "session_ref": fate.session_ref,
                "session_id": fate.session_id,
                "what": fate.what,
                "at": iso(fate.at),
            }
            for fate in ledger.fates
        ],
    }
