"""Date expressions: ``2026-10-03``, ``2026-10``, ``2026-W40``, ``yesterday``, ``7d``."""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

__all__ = ["parse_date_range"]

_AGO = re.compile(r"(\d{1,5})(h|d|w|m|y)(?:ago)?")
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_WEEK = re.compile(r"\d{4}-?w\d{2}")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_YEARS = range(1970, 9999)


def parse_date_range(
    text: str, now: datetime, zone: tzinfo | None = None
) -> tuple[datetime, datetime] | None:
    """Return the start and the exclusive end of a date, in ``zone`` or local time; None if it is invalid.

    A day, week, month or year is a range. ``7d`` is a single time, 7 × 24 hours before ``now``. A date with
    a time of day is a single time too.
    """
    text = text.strip().lower()
    try:
        if ago := _AGO.fullmatch(text):
            start = now.astimezone(UTC) - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
            return start, start
        if text == "now":
            return now, now
        if days := _parse_days(text, now.astimezone(zone).date()):
            start, end = (_with_zone(datetime.combine(day, time()), zone) for day in days)
        else:
            start = end = _with_zone(datetime.fromisoformat(text.upper()), zone)
    except (ValueError, OverflowError, OSError):  # OSError: the system has no zone data for that time
        return None
    return (start, end) if start.year in _YEARS else None


def _with_zone(naive: datetime, zone: tzinfo | None) -> datetime:
    """Add the zone if there is none, with the UTC offset valid at that time."""
    if naive.tzinfo is not None:
        return naive
    return naive.astimezone() if zone is None else naive.replace(tzinfo=zone)


def _parse_days(text: str, today: date) -> tuple[date, date] | None:
    """Return the first day and the first day after the range; None if the text is not a range of days."""
    if text in ("today", "yesterday"):
        start = today if text == "today" else today - timedelta(days=1)
        return start, start + timedelta(days=1)
    if match := _DATE.fullmatch(text):
        year, month, day = (int(part) if part else None for part in match.groups())
        start = date(year or 0, month or 1, day or 1)
        if day is not None:
            return start, start + timedelta(days=1)
        if month is not None:
            return start, (start + timedelta(days=31)).replace(day=1)
        return start, start.replace(year=start.year + 1)
    if len(text) > len("2026-W40-1"):
        return None
    start = date.fromisoformat(text.upper())
    return start, start + timedelta(days=7 if _WEEK.fullmatch(text) else 1)
