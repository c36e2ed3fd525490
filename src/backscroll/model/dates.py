"""Parse dates such as ``2026-10-03``, ``2026-10``, ``2026-W40``, ``yesterday`` or ``7d``; format times."""

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo

# Strings: compiling them would cost start-up time, and few commands parse a date.
_AGO = r"(\d{1,5})(h|d|w|m|y)(?:ago)?"
_DATE = r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
_WEEK = r"\d{4}-?w\d{2}"
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "m": 30 * 24, "y": 365 * 24}
_YEARS = range(1970, 9999)


def iso(at: datetime | None) -> str | None:
    """Return a time as ISO 8601 in UTC with milliseconds, as in the archive and in all JSON output."""
    if at is None:
        return None
    if at.tzinfo is not UTC:
        at = at.astimezone(UTC)
    return at.isoformat(timespec="milliseconds")[:-6] + "Z"


def parse_date_range(
    text: str, now: datetime, zone: tzinfo | None = None
) -> tuple[datetime, datetime] | None:
    """Return the start and the exclusive end of a date, in a zone or in local time; None if it is no date.

    A day, a week, a month and a year have their calendar length. ``7d`` is a single timestamp, 168 hours
    before ``now``. A date with a time of day is a single timestamp as well.
    """
    text = text.strip().lower()
    try:
        if ago := re.fullmatch(_AGO, text):
            begin = now.astimezone(UTC) - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
            return begin, begin
        if text == "now":
            return now, now
        if days := _days(text, now.astimezone(zone).date()):
            begin, end = (midnight(day, zone) for day in days)
        else:
            begin = end = _in_zone(datetime.fromisoformat(text.upper()), zone)
    except (ValueError, OverflowError, OSError):  # OSError: the system has no zone for such a time
        return None
    return (begin, end) if begin.year in _YEARS else None


def midnight(day: date, zone: tzinfo | None = None) -> datetime:
    """Return the start of a day in a zone or in local time. Days are not always 24 hours long."""
    return _in_zone(datetime.combine(day, time()), zone)


def _in_zone(time_: datetime, zone: tzinfo | None) -> datetime:
    """Add the zone to a time that has none. The offset is the one valid at that time."""
    if time_.tzinfo is not None:
        return time_
    return time_.astimezone() if zone is None else time_.replace(tzinfo=zone)


def _days(text: str, today: date) -> tuple[date, date] | None:
    """Return the first day and the exclusive last day; None if the text does not name whole days."""
    if text in ("today", "yesterday"):
        begin = today if text == "today" else today - timedelta(days=1)
        return begin, begin + timedelta(days=1)
    if named := re.fullmatch(_DATE, text):
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
    return begin, begin + timedelta(days=7 if re.fullmatch(_WEEK, text) else 1)
