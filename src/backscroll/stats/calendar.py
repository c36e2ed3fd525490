"""Days, weeks and months of a time zone."""

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import cache, lru_cache

BUCKET_SECONDS = 900


def bucket_start(bucket: int, zone: tzinfo | None) -> datetime:
    """Return the start of a 15-minute bucket, counted from 1970, in a zone or in local time."""
    return datetime.fromtimestamp(bucket * BUCKET_SECONDS, UTC).astimezone(zone)


@lru_cache(maxsize=8)
def period_namer(span: str, zone: tzinfo | None) -> Callable[[int | None], str | None]:
    """Return a function that names the period of a bucket: 2026-11-16, 2026-W47 or 2026-11."""
    pattern = {"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}[span]

    @cache
    def named(bucket: int | None) -> str | None:
        return bucket_start(bucket, zone).strftime(pattern) if bucket is not None else None

    return named


def zone_name(zone: tzinfo | None) -> str:
    """Return the name of a zone: UTC, or the local name."""
    if zone is UTC:
        return "UTC"
    return datetime.now(UTC).astimezone(zone).tzname() or "local time"
