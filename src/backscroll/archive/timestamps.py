"""Times in internal tables: integer milliseconds since 1970-01-01 UTC."""

import time as clock
from datetime import UTC, datetime

__all__ = ["from_ms", "now_ms", "to_ms"]


def to_ms(time: datetime) -> int:
    """Return a time as milliseconds since 1970."""
    return int(time.timestamp() * 1000)


def from_ms(milliseconds: int) -> datetime:
    """Return a time in UTC from milliseconds since 1970."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def now_ms() -> int:
    """Return the current time as milliseconds since 1970."""
    return clock.time_ns() // 1_000_000
