"""Time of a message, and the source of this time."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from backscroll.model import TimeSource
from backscroll.readers import timestamps
from backscroll.sources.cursor.database.decode import as_map

__all__ = ["Timestamp", "bubble_timestamp", "latest_plausible", "parse_time"]

_ISO_LENGTH = len("2026-09-21T14:13:20.000")
_CLOCK_TOLERANCE = timedelta(days=1)
_YEAR_2000_MS = 946_684_800_000


class Timestamp(NamedTuple):
    """Time and its source."""

    at: datetime
    source: TimeSource


def latest_plausible() -> datetime:
    """Return the latest time that a record can have. The tolerance allows for clocks that are ahead."""
    return datetime.now(UTC) + _CLOCK_TOLERANCE


def parse_time(value: Any, latest: datetime) -> datetime | None:
    """Parse a time in any format. Return None if it is not a time or is in the future."""
    if value is None:
        return None
    at = _parse_iso(value) if isinstance(value, str) and value[_ISO_LENGTH:] == "Z" else None
    at = at or timestamps.from_value(value)
    return at if at is not None and timestamps.EARLIEST <= at < latest else None


def _parse_iso(text: str) -> datetime | None:
    """Parse the format that the editor writes, without trying the others."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def bubble_timestamp(
    created_at: Any, timestamp: Any, timing: Any, header: Any, tool: Any, latest: datetime
) -> Timestamp | None:
    """Return the time of a bubble from its best source; None if it has no time of its own."""
    if at := parse_time(created_at, latest) or parse_time(timestamp, latest):
        return Timestamp(at, "stored")
    if header is not None and (at := parse_time(header.created_at, latest)):
        return Timestamp(at, "header")
    times = as_map(timing)
    for name in ("clientStartTime", "clientRpcSendTime", "clientSettleTime", "clientEndTime"):
        if at := _parse_wall_clock(times.get(name), latest):
            return Timestamp(at, "timing")
    if header is not None and (at := _parse_wall_clock(header.started_at_ms, latest)):
        return Timestamp(at, "header")
    additional = as_map(as_map(tool).get("additionalData"))
    if at := _parse_wall_clock(additional.get("startedAtMs"), latest):
        return Timestamp(at, "timing")
    return None


def _parse_wall_clock(milliseconds: Any, latest: datetime) -> datetime | None:
    """Parse milliseconds since 1970. Small values are of a clock that started with the window."""
    if not isinstance(milliseconds, int | float) or not milliseconds >= _YEAR_2000_MS:
        return None
    return parse_time(milliseconds, latest)
