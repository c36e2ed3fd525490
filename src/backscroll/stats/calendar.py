"""Days, weeks and months of somebody's time zone."""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, tzinfo
from functools import cache, lru_cache

__all__ = ["local", "midnight", "namer", "zone_name"]

_QUARTER = 900  # seconds


def local(quarter: int, zone: tzinfo | None) -> datetime:
    """When a quarter of an hour, counted from 1970, began; in this machine's time without a zone."""
    return datetime.fromtimestamp(quarter * _QUARTER, UTC).astimezone(zone)


@lru_cache(maxsize=8)
def namer(span: str, zone: tzinfo | None) -> Callable[[int | None], str | None]:
    """How the day, week or month of a quarter is called: 2026-11-16, 2026-W47, 2026-11."""
    pattern = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}[span]

    @cache
    def named(quarter: int | None) -> str | None:
        return local(quarter, zone).strftime(pattern) if quarter is not None else None

    return named


def midnight(day: date, zone: tzinfo | None) -> datetime:
    """When a day begins in the zone, or on this machine; days are not always 24 hours long."""
    begins = datetime.combine(day, time())
    return begins.astimezone() if zone is None else begins.replace(tzinfo=zone)


def zone_name(zone: tzinfo | None) -> str:
    """What to call the zone whose days are told: UTC, or this machine's name for its own."""
    if zone is UTC:
        return "UTC"
    return datetime.now(UTC).astimezone(zone).tzname() or "local time"
