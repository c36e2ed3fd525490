"""Days, weeks and months of somebody's time zone."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import cache, lru_cache

__all__ = ["QUARTER_SECONDS", "local", "namer", "zone_name"]

QUARTER_SECONDS = 900


def local(quarter: int, zone: tzinfo | None) -> datetime:
    """When a quarter of an hour, counted from 1970, began; in this machine's time without a zone."""
    return datetime.fromtimestamp(quarter * QUARTER_SECONDS, UTC).astimezone(zone)


@lru_cache(maxsize=8)
def namer(span: str, zone: tzinfo | None) -> Callable[[int | None], str | None]:
    """How the day, week or month of a quarter is called: 2026-11-16, 2026-W47, 2026-11."""
    pattern = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}[span]

    @cache
    def named(quarter: int | None) -> str | None:
        return local(quarter, zone).strftime(pattern) if quarter is not None else None

    return named


def zone_name(zone: tzinfo | None) -> str:
    """What to call the zone whose days are told: UTC, or this machine's name for its own."""
    if zone is UTC:
        return "UTC"
    return datetime.now(UTC).astimezone(zone).tzname() or "local time"
