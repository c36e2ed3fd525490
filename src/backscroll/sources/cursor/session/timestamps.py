"""When something was said, and how that is known."""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from backscroll.model import TimeSource
from backscroll.readers import timestamps
from backscroll.sources.cursor.database.decode import as_map

__all__ = ["Moment", "latest_believable", "of_bubble", "of_value"]

_ISO_LENGTH = len("2026-09-21T14:13:20.000")
_AHEAD = timedelta(days=1)
_YEAR_2000 = 946_684_800_000  # in ms; a smaller reading is of a clock that began with the window


class Moment(NamedTuple):
    at: datetime
    source: TimeSource


def latest_believable() -> datetime:
    """No record can have been written after this; a little slack for clocks that are ahead."""
    return datetime.now(UTC) + _AHEAD


def of_value(value: Any, latest: datetime) -> datetime | None:
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


def of_bubble(
    created_at: Any, timestamp: Any, timing: Any, header: Any, tool: Any, latest: datetime
) -> Moment | None:
    """The bubble's own time by the best evidence; None when only its neighbours can tell."""
    if at := of_value(created_at, latest) or of_value(timestamp, latest):
        return Moment(at, "stored")
    if header is not None and (at := of_value(header.created_at, latest)):
        return Moment(at, "header")
    clock = as_map(timing)
    for name in ("clientStartTime", "clientRpcSendTime", "clientSettleTime", "clientEndTime"):
        if at := _absolute(clock.get(name), latest):
            return Moment(at, "timing")
    if header is not None and (at := _absolute(header.started_at_ms, latest)):
        return Moment(at, "header")
    extra = as_map(as_map(tool).get("additionalData"))
    if at := _absolute(extra.get("startedAtMs"), latest):
        return Moment(at, "timing")
    return None


def _absolute(reading: Any, latest: datetime) -> datetime | None:
    """A reading in milliseconds, unless it is of a clock that began with the window."""
    if not isinstance(reading, int | float) or not reading >= _YEAR_2000:
        return None
    return of_value(reading, latest)
