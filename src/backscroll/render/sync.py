"""Sessions that a tool deleted, overwrote or restored, and those that it will delete soon."""

from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Any

from backscroll.model.dates import iso
from backscroll.model.retention import WARNING_DAYS, Retention
from backscroll.model.sync import EventCode, EventLog
from backscroll.model.text import pluralize, sanitize


def events_line(log: EventLog, now: datetime, *, zone: tzinfo | None = None) -> str | None:
    """Return for example ``12 sessions deleted by the tool since Tuesday, kept in the archive; 1 came back``.

    None if there are no events. Days are in the local time zone unless `zone` is given.
    """
    if not log.events:
        return None
    since = _since(log.events[0].at.astimezone(zone), now.astimezone(zone)) if log.since else ""
    parts: list[str] = []
    codes: tuple[EventCode, ...] = ("vanished", "overwritten", "came_back")
    for code in codes:
        if count := log.count(code):
            subject = f"{count:,}" if parts else pluralize(count, "session")
            parts.append(f"{subject} {_predicate(code, '' if parts else since)}")
    return "; ".join(parts)


def _predicate(code: EventCode, since: str) -> str:
    match code:
        case "vanished":
            return f"deleted by the tool{since}, kept in the archive"
        case "overwritten":
            return f"overwritten with an older version{since}, both versions kept"
        case "came_back":
            return f"came back{since}"


def _since(at: datetime, now: datetime) -> str:
    """Return the day of the first event: its name within a week, else its date."""
    if at.date() == now.date():
        return " today"
    if at.date() == now.date() - timedelta(days=1):
        return " since yesterday"
    return f" since {at:%A}" if now - at < timedelta(days=7) else f" since {at:%Y-%m-%d}"


def events_document(log: EventLog) -> dict[str, Any]:
    """Return the events as JSON."""
    return {
        "since": iso(log.since),
        "vanished": log.count("vanished"),
        "overwritten": log.count("overwritten"),
        "came_back": log.count("came_back"),
        "sessions": [
            {
                "session_ref": event.session_ref,
                "session_id": event.session_id,
                "what": event.what,
                "at": iso(event.at),
            }
            for event in log.events
        ],
    }


def retention_lines(retention: Retention) -> Iterator[str]:
    """Yield how many sessions a tool will delete soon, and the change of its settings that prevents it."""
    sessions = pluralize(len(retention.expiring), "session")
    set_by = "the tool's default" if retention.is_default else "from the tool's settings"
    limit = f"after {pluralize(retention.days, 'day')} without change ({set_by})"
    yield ""
    yield f"{sessions} will be deleted by the tool within {WARNING_DAYS} days, {limit}."
    if retention.trouble is not None:
        yield f"{sanitize(retention.settings)} {retention.trouble}; a limit set there is unknown."
        yield "The archive keeps these sessions."
        return
    yield "The archive keeps these sessions. To keep them in the tool as well:"
    yield ""
    yield from sanitize(retention.diff).splitlines()
