"""A year in review, as a page in a terminal and as Markdown."""

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from backscroll.model.sanitize import one_line
from backscroll.model.statistics import Favourite, Sums, Year
from backscroll.render.markdown_escape import code_span, escape_markdown
from backscroll.render.statistics.charts import bar
from backscroll.render.terminal.humanize import compact_number, format_cost, format_duration
from backscroll.render.terminal.style import Style
from backscroll.render.terminal.width import cell_width, pad, wrap

__all__ = ["year_lines", "year_markdown"]

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_BAR = 30
_NAME = 32


def year_lines(year: Year, *, style: Style, width: int) -> Iterator[str]:
    """The page in a terminal of so many columns."""
    bars = _Bars(style, min(_BAR, max(width - _NAME - 20, 8)))
    yield style("strong", f"{year.year} in review")
    yield ""
    for fact in _facts(year):
        yield from wrap(fact, width)
    if not year.active_days:
        return
    months = [row.messages or 0 for row in year.months]
    yield from bars("Months, by messages", _MONTHS, months, [format_cost(row) for row in year.months])
    yield from bars("Weekdays, by messages", _WEEKDAYS, year.weekdays)
    yield from bars("Hours, by messages", [f"{hour:02}" for hour in range(24)], year.hours)
    projects = [row.messages or 0 for row in year.projects]
    names = [_end(row.key or "") for row in year.projects]
    yield from bars("Projects, by messages", names, projects, [format_cost(row) for row in year.projects])
    files = [_end(one.path) for one in year.files]
    lines = [f"+{compact_number(one.added)} -{compact_number(one.removed)}" for one in year.files]
    yield from bars("Files, by edits", files, [one.edits for one in year.files], lines)
    yield from bars.favourites("Tools, by calls", year.tools)
    yield from bars.favourites("Models, by messages", year.models)
    if year.topics:
        yield ""
        yield style("title", "Topics")
        yield from wrap(", ".join(f"{one_line(one.name, 60)} {one.count:,}" for one in year.topics), width)
    yield ""
    yield style("dim", f"Days and hours are those of {year.zone}.")


def _facts(year: Year) -> Iterator[str]:
    total = year.total
    if not year.active_days:
        yield "Nothing was said in this year."
        return
    tokens = f", {total.tokens.total:,} tokens" if total.tokens is not None else ""
    priced = (
        f", {format_cost(total)} at prices of {year.prices_checked}" if total.cost_usd is not None else ""
    )
    said = f"{total.prompts or 0:,} prompts, {total.messages or 0:,} messages"
    yield f"{total.sessions:,} sessions, {said}{tokens}{priced}"
    yield f"{format_duration(total.active_seconds or 0)} at work on {year.active_days:,} days"
    lines = f"+{total.lines_added or 0:,} -{total.lines_removed or 0:,} lines"
    yield f"{lines}, {total.tool_calls or 0:,} tool calls"
    if year.streak is not None and year.streak.days > 1:
        yield f"{year.streak.days:,} days in a row, {year.streak.first} to {year.streak.last}"
    if year.busiest_day is not None:
        day, messages = year.busiest_day
        yield f"Busiest day: {_WEEKDAYS[day.weekday()]}, {day}, with {messages:,} messages"
    longest = year.longest_session
    if longest is not None:
        named = one_line(longest.title or longest.ref, 80)
        active = format_duration(longest.active_seconds)
        yield f"Longest session: {named}, {active} ({one_line(longest.ref, 80)})"


def _end(path: str) -> str:
    """The last two names of a path, which mostly tell it from others."""
    parts = PurePath(path).parts
    name = one_line(path if len(parts) <= 3 else f"…/{'/'.join(parts[-2:])}", 300)
    return name if len(name) <= _NAME else f"…{name[1 - _NAME :]}"


class _Bars:
    """Charts with bars of at most so many columns."""

    def __init__(self, style: Style, length: int) -> None:
        self._style = style
        self._length = length

    def __call__(
        self, title: str, names: Sequence[str], values: Sequence[int], beside: Sequence[str] = ()
    ) -> Iterator[str]:
        """A bar for each name, which stands for messages unless the title says otherwise."""
        if not any(values):
            return
        yield ""
        yield self._style("title", title)
        width = max(map(cell_width, names))
        digits = max(len(f"{value:,}") for value in values)
        for place, (name, value) in enumerate(zip(names, values, strict=True)):
            chart = bar(value, max(values), self._length)
            told = beside[place] if beside else ""
            chart = f"{pad(chart, self._length)}  " if told else chart
            yield f"  {pad(name, width)}  {value:>{digits},}  {self._style('accent', chart)}{told}".rstrip()

    def favourites(self, title: str, some: Sequence[Favourite]) -> Iterator[str]:
        return self(title, [one_line(one.name, _NAME) for one in some], [one.count for one in some])


def year_markdown(year: Year) -> Iterator[str]:
    """The page as Markdown."""
    yield f"# {year.year} in review"
    yield ""
    for fact in _facts(year):
        yield f"- {escape_markdown(fact)}"
    if not year.active_days:
        return
    yield from _table(
        "Months",
        ("month", "sessions", "prompts", "messages", "active", "tokens", "cost"),
        [(name, *_cells(row)) for name, row in zip(_MONTHS, year.months, strict=True)],
    )
    yield from _table(
        "Weekdays",
        ("day", "messages"),
        [(name, f"{count:,}") for name, count in zip(_WEEKDAYS, year.weekdays, strict=True)],
    )
    yield from _table(
        "Hours",
        ("hour", "messages"),
        [(f"{hour:02}", f"{count:,}") for hour, count in enumerate(year.hours) if count],
    )
    yield from _table(
        "Projects",
        ("workspace", "sessions", "prompts", "messages", "active", "tokens", "cost"),
        [(_code(row.key or ""), *_cells(row)) for row in year.projects],
    )
    yield from _table(
        "Files",
        ("file", "edits", "added", "removed"),
        [(_code(one.path), f"{one.edits:,}", f"{one.added:,}", f"{one.removed:,}") for one in year.files],
    )
    yield from _table(
        "Tools", ("tool", "calls"), [(escape_markdown(one.name), f"{one.count:,}") for one in year.tools]
    )
    yield from _table(
        "Models",
        ("model", "messages"),
        [(escape_markdown(one.name), f"{one.count:,}") for one in year.models],
    )
    yield from _table(
        "Topics",
        ("topic", "sessions"),
        [(escape_markdown(one.name), f"{one.count:,}") for one in year.topics],
    )
    yield ""
    yield escape_markdown(f"Days and hours are those of {year.zone}.")


def _cells(row: Sums) -> tuple[str, ...]:
    tokens = f"{row.tokens.total:,}" if row.tokens is not None else ""
    active = format_duration(row.active_seconds) if row.active_seconds else ""
    return (
        f"{row.sessions:,}",
        f"{row.prompts or 0:,}",
        f"{row.messages or 0:,}",
        active,
        tokens,
        format_cost(row),
    )


def _code(text: str) -> str:
    """A path in a table: there a bar must be escaped even within code."""
    return code_span(text).replace("|", "\\|")


def _table(title: str, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield f"## {title}"
    yield ""
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
