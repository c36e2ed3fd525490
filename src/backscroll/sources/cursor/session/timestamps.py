"""When something was said, and how that is known."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from backscroll.model import TimeSource
from backscroll.readers import timestamps
from backscroll.sources.cursor.database.decode import as_map

__all__ = ["Timestamp", "bubble_timestamp", "latest_plausible", "parse_time"]

_ISO_LENGTH = len("2026-09-21T14:13:20.000")
_AHEAD = timedelta(days=1)
_YEAR_2000 = 946_684_800_000  # in ms; a smaller reading is of a clock that began with the window


class Timestamp(NamedTuple):
    at: datetime
    source: TimeSource


def latest_plausible() -> datetime:
    """No record can have been written after this; a little slack for clocks that are ahead."""
    return datetime.now(UTC) + _AHEAD


def parse_time(value: Any, latest: datetime) -> datetime | None:
    """A time in any spelling; None when it is none, or lies in the future."""
    if value is None:
        return None
    at = _as_written(value) if isinstance(value, str) and value[_ISO_LENGTH:] == "Z" else None
    at = at or timestamps.from_value(value)
    return at if at is not None and timestamps.EARLIEST <= at < latest else None


def _as_written(text: str) -> datetime | None:
    """The one spelling that the editor itself writes, read without a look at all others."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def bubble_timestamp(
    created_at: Any, timestamp: Any, timing: Any, header: Any, tool: Any, latest: datetime
) -> Timestamp | None:
    """The bubble's own time by the best evidence; None when only its neighbours can tell."""
    if at := parse_time(created_at, latest) or parse_time(timestamp, latest):
        return Timestamp(at, "stored")
    if header is not None and (at := parse_time(header.created_at, latest)):
        return Timestamp(at, "header")
    clock = as_map(timing)
    for name in ("clientStartTime", "clientRpcSendTime", "clientSettleTime", "clientEndTime"):
        if at := _absolute(clock.get(name), latest):
            return Timestamp(at, "timing")
    if header is not None and (at := _absolute(header.started_at_ms, latest)):
        return Timestamp(at, "header")
    extra = as_map(as_map(tool).get("additionalData"))
    if at := _absolute(extra.get("startedAtMs"), latest):
        return Timestamp(at, "timing")
    return None


def _absolute(reading: Any, latest: datetime) -> datetime | None:
    """A reading in milliseconds, unless it is of a clock that began with the window."""
    if not isinstance(reading, int | float) or not reading >= _YEAR_2000:
        return None
    return parse_time(reading, latest)
