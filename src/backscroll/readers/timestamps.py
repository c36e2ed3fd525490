"""Parse timestamps in all formats that the tools use, as aware UTC datetimes.

A number is in seconds, milliseconds or microseconds, depending on its magnitude. Values before 2020 or after
2100 are rejected: they are readings of other clocks.
"""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

EARLIEST = datetime(2020, 1, 1, tzinfo=UTC)
_LATEST = datetime(2100, 1, 1, tzinfo=UTC)
_EARLIEST_YEAR, _LATEST_YEAR = EARLIEST.year, _LATEST.year
_EARLIEST_SECONDS = EARLIEST.timestamp()
_LATEST_SECONDS = _LATEST.timestamp()
MIN_UNIX_DIGITS = 10  # digits of a Unix time in seconds
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_from_iso = datetime.fromisoformat

# Rarely needed, so compiled on first use.
_ENGLISH = (
    r"(?:[A-Za-z]+,\s+)?([A-Za-z]{3})[a-z]*\.?\s+(\d{1,2}),?\s+(\d{4}),?\s+(\d{1,2}):(\d{2})(?::(\d{2}))?"
    r"\s*([AaPp])?\.?[Mm]?\.?\s*(?:\(?\s*(?:UTC|GMT)\s*([+\-−]\d{1,2})?(?::?(\d{2}))?\s*\)?)?"
)
_GIT = r"[A-Za-z]{3}\s+([A-Za-z]{3})\s+(\d{1,2})\s+(\d{2}):(\d{2}):(\d{2})\s+(\d{4})\s+([+\-])(\d{2})(\d{2})"
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}


def from_value(value: Any) -> datetime | None:
    """Return a timestamp from text or a number; None for anything else."""
    if isinstance(value, str):
        if value[-1:] == "Z":  # the common case
            try:
                at = _from_iso(value)
            except ValueError:
                return from_text(value)
            return at if _EARLIEST_YEAR <= at.year < _LATEST_YEAR else None
        return from_text(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return from_number(value)
    return None


def from_number(value: float) -> datetime | None:
    """Return a timestamp from seconds, milliseconds or microseconds since 1970."""
    try:
        seconds = float(value)
    except OverflowError:
        return None
    if seconds > 1e14:
        seconds /= 1e6
    elif seconds > 1e11:
        seconds /= 1e3
    if not _EARLIEST_SECONDS <= seconds < _LATEST_SECONDS:
        return None
    whole = int(seconds)
    return _EPOCH + timedelta(seconds=whole, microseconds=round((seconds - whole) * 1e6))


def from_text(text: str) -> datetime | None:
    """Parse ISO 8601, numeric text or git's format. Without a zone the time is UTC."""
    text = text.strip()
    if len(text) >= MIN_UNIX_DIGITS and text.isdecimal():
        # Python would parse 1720101012345 as 10 October 1720, 23:45.
        return from_number(float(text))
    try:
        at = _from_iso(text)
    except ValueError:
        return _from_odd_text(text)
    return _in_range(at)


def _in_range(at: datetime) -> datetime | None:
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    try:
        at = at.astimezone(UTC)
    except OverflowError:
        return None
    return at if EARLIEST <= at < _LATEST else None


def _from_odd_text(text: str) -> datetime | None:
    try:
        return from_number(float(text)) if text[:1].isdigit() else _from_git(text)
    except (ValueError, OverflowError):
        return None


def _from_git(text: str) -> datetime | None:
    found = re.fullmatch(_GIT, text)
    if found is None or (month := _MONTHS.get(found[1].lower())) is None:
        return None
    zone = timedelta(hours=int(found[8]), minutes=int(found[9]))
    try:
        at = datetime(
            int(found[6]),
            month,
            int(found[2]),
            int(found[3]),
            int(found[4]),
            int(found[5]),
            tzinfo=timezone(-zone if found[7] == "-" else zone),
        )
    except ValueError:
        return None
    return _in_range(at)


def from_english(text: str) -> datetime | None:
    """Parse a time written in English: ``Friday, Jul 31, 2026, 11:12 PM (UTC+8)``."""
    found = re.search(_ENGLISH, text)
    if found is None or (month := _MONTHS.get(found[1].lower())) is None:
        return None
    hour = int(found[4])
    if found[7]:
        hour = hour % 12 + (12 if found[7] in "Pp" else 0)
    hours = int((found[8] or "0").replace("−", "-"))
    minutes = int(found[9] or 0)
    offset = timedelta(hours=hours, minutes=-minutes if (found[8] or "").startswith(("-", "−")) else minutes)
    try:
        at = datetime(
            int(found[3]),
            month,
            int(found[2]),
            hour,
            int(found[5]),
            int(found[6] or 0),
            tzinfo=timezone(offset),
        )
    except ValueError:
        return None
    return _in_range(at)
