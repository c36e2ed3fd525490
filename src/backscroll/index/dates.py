"""Dates as people type them: ``2026-10-03``, ``2026-10``, ``yesterday``, ``7d``."""

import re
from datetime import datetime, timedelta

__all__ = ["span_of"]

_AGO = re.compile(r"(\d{1,5})(h|d|w|m|y)(?:ago)?")
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_YEARS = range(1970, 9999)


def span_of(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    """When a date begins and when it is over, in the zone of ``now``; None when it is no date.

    A day, a month and a year last as long as they do. ``7d`` is a moment, seven times twenty-four hours
    before ``now``, and so is a date with a time of day.
    """
    text = text.strip().lower()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    day = timedelta(days=1)
    if text in ("now", "today", "yesterday"):
        begin = {"now": now, "today": midnight, "yesterday": midnight - day}[text]
        return begin, begin if text == "now" else begin + day
    try:
        if ago := _AGO.fullmatch(text):
            begin = now - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
            return begin, begin
        if date := _DATE.fullmatch(text):
            return _calendar(midnight, *(int(part) if part else None for part in date.groups()))
        begin = datetime.fromisoformat(text.upper())
        begin = begin.replace(tzinfo=now.tzinfo) if begin.tzinfo is None else begin
    except (ValueError, OverflowError):
        return None
    return (begin, begin) if begin.year in _YEARS else None


def _calendar(
    midnight: datetime, year: int | None, month: int | None, day: int | None
) -> tuple[datetime, datetime] | None:
    if year is None or year not in _YEARS:
        return None
    begin = midnight.replace(year=year, month=month or 1, day=day or 1)
    if day is not None:
        return begin, begin + timedelta(days=1)
    if month is not None:
        return begin, (begin + timedelta(days=31)).replace(day=1)
    return begin, begin.replace(year=year + 1)
