"""Days, weeks, months, quarters and years."""

import re
from datetime import date, datetime, timedelta, tzinfo

from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.model.code.journal import PeriodKind
from backscroll.model.dates import parse_date_range

__all__ = ["Period", "parse_period"]

_QUARTER = re.compile(r"(\d{4})-?Q([1-4])", re.IGNORECASE)
_WEEK = re.compile(r"(\d{4})-?W(\d{2})", re.IGNORECASE)
_MONTH = re.compile(r"(\d{4})-(\d{1,2})")
_YEAR = re.compile(r"\d{4}")
_EXAMPLES: dict[PeriodKind, str] = {
    "day": "2026-07-13, today or yesterday",
    "week": "2026-W29, or a day in it",
    "month": "2026-07, or a day in it",
    "quarter": "2026-Q3, or a day in it",
    "year": "2026, or a day in it",
}
_FOLDERS: dict[PeriodKind, str] = {
    "day": "daily",
    "week": "weekly",
    "month": "monthly",
    "quarter": "quarterly",
    "year": "yearly",
}


class Period(Struct, frozen=True):
    """A calendar period."""

    kind: PeriodKind
    first: date
    end: date  # the day after the last
    name: str  # such as 2026-W29

    @property
    def file_name(self) -> str:
        """Path of the summary in the folder ``summaries``."""
        return f"{_FOLDERS[self.kind]}/{self.name}-summary.md"

    def start(self, zone: tzinfo | None) -> datetime:
        """The first moment of the period, in a zone or in local time."""
        return _midnight(self.first, zone)

    def stop(self, zone: tzinfo | None) -> datetime:
        """The first moment after the period."""
        return _midnight(self.end, zone)


def parse_period(kind: PeriodKind, text: str, now: datetime, zone: tzinfo | None = None) -> Period:
    """Return the period that a text names, or that contains the day that it names. Raises `UsageError`."""
    text = text.strip()
    try:
        day = _first_day(kind, text) or _named_day(text, now, zone)
    except ValueError as error:
        raise _usage_error(kind, text) from error
    if day is None:
        raise _usage_error(kind, text)
    match kind:
        case "day":
            return Period(kind, day, day + timedelta(days=1), day.isoformat())
        case "week":
            monday = day - timedelta(days=day.weekday())
            year, week, _ = monday.isocalendar()
            return Period(kind, monday, monday + timedelta(days=7), f"{year}-W{week:02}")
        case "month":
            return _months(kind, day.replace(day=1), 1, f"{day:%Y-%m}")
        case "quarter":
            first = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
            return _months(kind, first, 3, f"{day.year}-Q{(day.month + 2) // 3}")
        case "year":
            return _months(kind, day.replace(month=1, day=1), 12, f"{day.year}")


def _months(kind: PeriodKind, first: date, count: int, name: str) -> Period:
    months = first.month - 1 + count
    end = date(first.year + months // 12, months % 12 + 1, 1)
    return Period(kind, first, end, name)


def _first_day(kind: PeriodKind, text: str) -> date | None:
    if kind == "quarter" and (quarter := _QUARTER.fullmatch(text)):
        return date(int(quarter[1]), int(quarter[2]) * 3 - 2, 1)
    if kind == "week" and (week := _WEEK.fullmatch(text)):
        return date.fromisocalendar(int(week[1]), int(week[2]), 1)
    if kind == "month" and (month := _MONTH.fullmatch(text)):
        return date(int(month[1]), int(month[2]), 1)
    if kind == "year" and _YEAR.fullmatch(text):
        return date(int(text), 1, 1)
    return None


def _named_day(text: str, now: datetime, zone: tzinfo | None) -> date | None:
    if _YEAR.fullmatch(text) or _MONTH.fullmatch(text) or _WEEK.fullmatch(text):
        return None  # another kind of period
    span = parse_date_range(text, now, zone)
    return span[0].astimezone(zone).date() if span is not None else None


def _usage_error(kind: PeriodKind, text: str) -> UsageError:
    return UsageError(f"{text!r} is not a {kind}. Use {_EXAMPLES[kind]}.")


def _midnight(day: date, zone: tzinfo | None) -> datetime:
    start = datetime.combine(day, datetime.min.time())
    return start.astimezone() if zone is None else start.replace(tzinfo=zone)
