"""Dates as people type them: ``2026-10-03``, ``2026-10``, ``2026-W40``, ``yesterday``, ``7d``."""

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
    """When a date begins and when it is over, in a zone or in this machine's time; None when it is no date.

    A day, a week, a month and a year last as long as they do. ``7d`` is a moment, seven times twenty-four
    hours before ``now``, and so is a date with a time of day.
    """
    text = text.strip().lower()
    try:
        if ago := _AGO.fullmatch(text):
            begin = now.astimezone(UTC) - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
            return begin, begin
        if text == "now":
            return now, now
        if days := _days(text, now.astimezone(zone).date()):
            begin, end = (_placed(datetime.combine(day, time()), zone) for day in days)
        else:
            begin = end = _placed(datetime.fromisoformat(text.upper()), zone)
    except (ValueError, OverflowError, OSError):  # the last where a system knows no zone for such a time
        return None
    return (begin, end) if begin.year in _YEARS else None


def _placed(moment: datetime, zone: tzinfo | None) -> datetime:
    """A moment that says no zone, in the one that is meant; the offset is the one of then, not of now."""
    if moment.tzinfo is not None:
        return moment
    return moment.astimezone() if zone is None else moment.replace(tzinfo=zone)


def _days(text: str, today: date) -> tuple[date, date] | None:
    """The first day that is meant and the first that is not; None when it is no whole days that are."""
    if text in ("today", "yesterday"):
        begin = today if text == "today" else today - timedelta(days=1)
        return begin, begin + timedelta(days=1)
    if named := _DATE.fullmatch(text):
        year, month, day = (int(part) if part else None for part in named.groups())
        begin = date(year or 0, month or 1, day or 1)
        if day is not None:
            return begin, begin + timedelta(days=1)
        if month is not None:
            return begin, (begin + timedelta(days=31)).replace(day=1)
        return begin, begin.replace(year=begin.year + 1)
    if len(text) > len("2026-W40-1"):
        return None
    begin = date.fromisoformat(text.upper())
    return begin, begin + timedelta(days=7 if _WEEK.fullmatch(text) else 1)
