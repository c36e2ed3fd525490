"""Summaries of days, weeks, months, quarters and years.

They are made from the files of the days. So they contain what the user changed there.
"""

import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path

from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.journal.entry import bullet_list
from backscroll.journal.files import (
    DailyFiles,
    block_text,
    parse_blocks,
    put_block,
    read_text,
    write_atomically,
)
from backscroll.model.dates import midnight, parse_date_range
from backscroll.model.journal import SECTION_TITLES, PeriodKind
from backscroll.model.text import pluralize
from backscroll.render.humanize import short_sha

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

_HEADING = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_SECTION = re.compile(r"^### (?P<title>.+)$", re.MULTILINE)
_ITEM = re.compile(r"^- ", re.MULTILINE)
_OUTCOME = re.compile(r"^Outcome: (.+)$", re.MULTILINE)
# Items of a section, and whether they keep their nested lines.
_MAX_ITEMS: dict[PeriodKind, int] = {"day": 50, "week": 50, "month": 40, "quarter": 40, "year": 60}
_DETAILED: tuple[PeriodKind, ...] = ("day", "week")


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
        return midnight(self.first, zone)

    def stop(self, zone: tzinfo | None) -> datetime:
        """The first moment after the period."""
        return midnight(self.end, zone)


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


def _months(kind: PeriodKind, first: date, count: int, name: str) -> Period:
    months = first.month - 1 + count
    end = date(first.year + months // 12, months % 12 + 1, 1)
    return Period(kind, first, end, name)


def write_summary(files: DailyFiles, period: Period) -> tuple[Path | None, bool, bool]:
    """Write the summary of a period.

    Return its path (None if the period has no entries), whether the file changed, and whether the user
    edited it, which keeps it as it is.
    """
    text = _summary_text(files, period)
    path = files.folder / "summaries" / period.file_name
    if text is None:
        return None, False, False
    fields = {"period": period.name}
    if not path.exists():
        write_atomically(path, block_text("summary", fields, text), expected=None)
        return path, True, False
    content = read_text(path)
    block = next((block for block in parse_blocks(content) if block.kind == "summary"), None)
    if block is None or block.is_edited:
        return path, False, True
    new = put_block(content, block, fields, text)
    if new != content:
        write_atomically(path, new, expected=content)
    return path, new != content, False


def _summary_text(files: DailyFiles, period: Period) -> str | None:
    """Return the summary of a period as Markdown; None if it has no entries and no notes."""
    records = [
        record
        for day, path in files.days()
        if period.first <= day < period.end
        for record in _records(day.isoformat(), path)
    ]
    if not records:
        return None
    entries = [record for record in records if record.kind == "entry"]
    days = len({record.day for record in records})
    parts = [f"# {period.name}"]
    counts = [pluralize(len(entries), "commit")] if entries else []
    if period.kind != "day":
        counts.append(f"on {pluralize(days, 'day')}")
    if counts:
        parts.append(f"{' '.join(counts)}.")
    if entries:
        parts.append("## Commits\n\n" + bullet_list(_commit_item(record, period) for record in entries))
    for name in ("decisions", "frustrations", "open"):
        title = SECTION_TITLES[name]
        items = list(_items(entries, title, period))
        if items:
            parts.append(f"## {title}\n\n{bullet_list(items)}")
    for kind, title in (("reflection", "Reflections"), ("context", "Context")):
        notes = [record for record in records if record.kind == kind]
        if notes:
            texts = [f"**{_when(record, period)}** {' '.join(record.text.split())}" for record in notes]
            parts.append(f"## {title}\n\n{bullet_list(texts)}")
    return "\n\n".join(parts) + "\n"


class _Record(Struct, frozen=True):
    """An entry or a note of a day."""

    kind: str
    day: str
    title: str  # time and subject
    sha: str
    sections: dict[str, str]
    text: str  # without the title


def _records(day: str, path: Path) -> Iterator[_Record]:
    for block in parse_blocks(read_text(path)):
        heading = _HEADING.search(block.text)
        body = block.text[heading.end() :] if heading is not None else block.text
        found = list(_SECTION.finditer(body))
        sections = {
            match["title"].strip(): body[match.end() : after].strip()
            for match, after in zip(found, [*(m.start() for m in found[1:]), len(body)], strict=False)
        }
        title = heading["title"].strip() if heading is not None else ""
        yield _Record(block.kind, day, title, block.fields.get("sha", ""), sections, body.strip())


def _commit_item(record: _Record, period: Period) -> str:
    time, _, subject = record.title.partition(" ")
    when = time if period.kind == "day" else record.day
    line = f"{when} {subject} (`{short_sha(record.sha)}`)"
    outcome = _OUTCOME.search(record.sections.get(SECTION_TITLES["summary"], ""))
    if outcome is not None and period.kind in _DETAILED:
        line += f"\n  - {outcome[1]}"
    return line


def _items(entries: list[_Record], title: str, period: Period) -> Iterator[str]:
    """Yield the items of a section, grouped by commit.

    In a long period, discussed items come before plain ones, and only their first lines are kept.
    """
    found: list[tuple[int, list[str]]] = []  # number of the entry, lines of the item
    for number, record in enumerate(entries):
        for text in _ITEM.split(f"\n{record.sections.get(title, '')}")[1:]:
            found.append((number, text.strip().splitlines()))
    limit = _MAX_ITEMS[period.kind]
    if len(found) > limit:
        is_discussed = [len(lines) > 1 for _, lines in found]
        kept = sorted(range(len(found)), key=lambda index: (not is_discussed[index], index))[:limit]
        found = [found[index] for index in sorted(kept)]
    for number, record in enumerate(entries):
        own = [lines for at, lines in found if at == number]
        if own:
            when = "" if period.kind == "day" else f"{record.day} "
            shown = own if period.kind in _DETAILED else [lines[:1] for lines in own]
            nested = [f"  - {lines[0]}" + "".join(f"\n  {line}" for line in lines[1:]) for lines in shown]
            yield "\n".join([f"**{when}{record.title.partition(' ')[2]}**", *nested])


def _when(record: _Record, period: Period) -> str:
    time = record.title.partition(" ")[0]
    return time if period.kind == "day" else f"{record.day} {time}"
