"""Summaries of a period, from the files of its days. So they contain what the user changed there."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from backscroll.journal.files.atomic_write import read_text, write_atomically
from backscroll.journal.files.daily_files import DailyFiles, block_text, parse_blocks, put_block
from backscroll.journal.files.periods import Period
from backscroll.journal.markup import bullet_list
from backscroll.model.code.journal import SECTION_TITLES, PeriodKind
from backscroll.model.text import pluralize

__all__ = ["summary_text", "write_summary"]

_HEADING = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_SECTION = re.compile(r"^### (?P<title>.+)$", re.MULTILINE)
_ITEM = re.compile(r"^- ", re.MULTILINE)
_OUTCOME = re.compile(r"^Outcome: (.+)$", re.MULTILINE)
_SHA_CHARS = 9
# Items of a section, and whether they keep their nested lines.
_MAX_ITEMS: dict[PeriodKind, int] = {"day": 50, "week": 50, "month": 40, "quarter": 40, "year": 60}
_DETAILED: tuple[PeriodKind, ...] = ("day", "week")


class _Record(Struct, frozen=True):
    """An entry or a note of a day."""

    kind: str
    day: str
    title: str  # time and subject
    sha: str
    sections: dict[str, str]
    text: str  # without the title


def write_summary(files: DailyFiles, period: Period) -> tuple[Path | None, bool, bool]:
    """Write the summary of a period.

    Return its path (None if the period has no entries), whether the file changed, and whether the user
    edited it, which keeps it as it is.
    """
    text = summary_text(files, period)
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


def summary_text(files: DailyFiles, period: Period) -> str | None:
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
    line = f"{when} {subject} (`{record.sha[:_SHA_CHARS]}`)"
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
