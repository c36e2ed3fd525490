"""Messages by day of the week and hour of the day."""

from datetime import tzinfo

from backscroll.archive.query.statistics import Statistics
from backscroll.stats.calendar import bucket_start

__all__ = ["messages_by_hour"]


def messages_by_hour(counted: Statistics, zone: tzinfo | None = None) -> tuple[tuple[int, ...], ...]:
    """Return 24 counts for each of the seven days from Monday, in a zone or in local time."""
    counts = [[0] * 24 for _ in range(7)]
    for one in counted.activity():
        if one.bucket is not None and one.messages:
            at = bucket_start(one.bucket, zone)
            counts[at.weekday()][at.hour] += one.messages
    return tuple(map(tuple, counts))
