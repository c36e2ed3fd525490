"""One year in review, for terminals and as Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from backscroll.model.statistics import Favorite, Sums, Year
from backscroll.model.text import one_line, pluralize
from backscroll.render.humanize import compact_number, format_cost, format_duration
from backscroll.render.markdown import code_span, escape_markdown
from backscroll.render.statistics import bar, uncounted_note
from backscroll.render.terminal_text import Style, cell_width, pad, wrap

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MAX_BAR_WIDTH = 30
_MIN_BAR_WIDTH = 8
_MAX_NAME_CHARS = 32


def year_lines(year: Year, *, style: Style, width: int) -> Iterator[str]:
    """Yield the review in lines of at most `width` cells."""
    bars = _Bars(style, min(_MAX_BAR_WIDTH, max(width - _MAX_NAME_CHARS - 20, _MIN_BAR_WIDTH)))
    yield style("strong", f"{year.year} in review")
    yield ""
    for line in _highlights(year):
        yield from wrap(line, width)
    if not year.active_days:
        return
    months = [row.messages or 0 for row in year.months]
    yield from bars("Months, by messages", _MONTHS, months, [format_cost(row) for row in year.months])
    yield from bars("Weekdays, by messages", _WEEKDAYS, year.weekdays)
    yield from bars("Hours, by messages", [f"{hour:02}" for hour in range(24)], year.hours)
    projects = [row.messages or 0 for row in year.projects]
    names = [_short_path(row.key or "") for row in year.projects]
    yield from bars("Projects, by messages", names, projects, [format_cost(row) for row in year.projects])
    files = [_short_path(file.path) for file in year.files]
    lines = [f"+{compact_number(file.added)} -{compact_number(file.removed)}" for file in year.files]
    yield from bars("Files, by edits", files, [file.edits for file in year.files], lines)
    yield from bars.counts("Tools, by calls", year.tools)
    yield from bars.counts("Models, by messages", year.models)
    if year.topics:
        yield ""
        yield style("title", "Topics")
        topics = (f"{one_line(topic.name, 60)} {topic.count:,}" for topic in year.topics)
        yield from wrap(", ".join(topics), width)
    yield ""
    yield style("dim", f"Time zone: {year.zone}.")


def _highlights(year: Year) -> Iterator[str]:
    total = year.total
    if not year.active_days:
        yield f"No sessions in {year.year}."
        return
    counts = [
        pluralize(total.sessions, "session"),
        *([pluralize(total.prompts, "prompt")] if total.prompts is not None else []),
        pluralize(total.messages or 0, "message"),
    ]
    if total.tokens is not None:
        at_least = "at least " if total.is_at_least else ""
        counts.append(f"{at_least}{pluralize(total.tokens.total, 'token')}")
    if total.cost_usd is not None:
        counts.append(f"{format_cost(total)} (prices of {year.prices_checked})")
    yield ", ".join(counts)
    active = (
        f"{format_duration(total.active_seconds)} active" if total.active_seconds is not None else "Active"
    )
    yield f"{active} on {pluralize(year.active_days, 'day')}"
    lines = f"+{total.lines_added or 0:,} -{total.lines_removed or 0:,} lines"
    yield f"{lines}, {pluralize(total.tool_calls or 0, 'tool call')}"
    if year.uncounted_sessions:
        yield uncounted_note(year.uncounted_sessions)
    if year.streak is not None and year.streak.days > 1:
        yield f"Longest streak: {year.streak.days:,} days, {year.streak.first} to {year.streak.last}"
    if year.busiest_day is not None:
        day, messages = year.busiest_day
        yield f"Busiest day: {_WEEKDAYS[day.weekday()]}, {day}, with {pluralize(messages, 'message')}"
    longest = year.longest_session
    if longest is not None:
        title = one_line(longest.title or longest.ref, 80)
        active = format_duration(longest.active_seconds)
        yield f"Longest session: {title}, {active} ({one_line(longest.ref, 80)})"


def _short_path(path: str) -> str:
    """Return the last two parts of a path."""
    parts = PurePath(path).parts
    name = one_line(path if len(parts) <= 3 else f"…/{'/'.join(parts[-2:])}", 300)
    return name if len(name) <= _MAX_NAME_CHARS else f"…{name[1 - _MAX_NAME_CHARS :]}"


class _Bars:
    """Bar charts with bars of at most `length` cells."""

    def __init__(self, style: Style, length: int) -> None:
        self._style = style
        self._length = length

    def __call__(
        self, title: str, names: Sequence[str], values: Sequence[int], suffixes: Sequence[str] = ()
    ) -> Iterator[str]:
        """Yield a heading and one bar per name. Nothing if all values are zero."""
        if not any(values):
            return
        yield ""
        yield self._style("title", title)
        width = max(map(cell_width, names))
        digits = max(len(f"{value:,}") for value in values)
        for index, (name, value) in enumerate(zip(names, values, strict=True)):
            chart = bar(value, max(values), self._length)
            suffix = suffixes[index] if suffixes else ""
            chart = f"{pad(chart, self._length)}  " if suffix else chart
            yield f"  {pad(name, width)}  {value:>{digits},}  {self._style('accent', chart)}{suffix}".rstrip()

    def counts(self, title: str, entries: Sequence[Favorite]) -> Iterator[str]:
        names = [one_line(entry.name, _MAX_NAME_CHARS) for entry in entries]
        return self(title, names, [entry.count for entry in entries])


def year_markdown(year: Year) -> Iterator[str]:
    """Yield the review as lines of Markdown."""
    yield f"# {year.year} in review"
    yield ""
    for line in _highlights(year):
        yield f"- {escape_markdown(line)}"
    if not year.active_days:
        return
    figures = ("sessions", "prompts", "messages", "active", "tokens", "cost")
    months = [(name, *_row_cells(row)) for name, row in zip(_MONTHS, year.months, strict=True)]
    yield from _table("Months", ("month", *figures), months)
    yield from _table("Weekdays", ("day", "messages"), _counts(zip(_WEEKDAYS, year.weekdays, strict=True)))
    hours = ((f"{hour:02}", count) for hour, count in enumerate(year.hours) if count)
    yield from _table("Hours", ("hour", "messages"), _counts(hours))
    projects = [(_code(row.key or ""), *_row_cells(row)) for row in year.projects]
    yield from _table("Projects", ("workspace", *figures), projects)
    files = [
        (_code(file.path), f"{file.edits:,}", f"{file.added:,}", f"{file.removed:,}") for file in year.files
    ]
    yield from _table("Files", ("file", "edits", "added", "removed"), files)
    for title, names, entries in (
        ("Tools", ("tool", "calls"), year.tools),
        ("Models", ("model", "messages"), year.models),
        ("Topics", ("topic", "sessions"), year.topics),
    ):
        yield from _table(title, names, _counts((escape_markdown(one.name), one.count) for one in entries))
    yield ""
    yield escape_markdown(f"Time zone: {year.zone}.")


def _counts(entries: Iterable[tuple[str, int]]) -> list[tuple[str, str]]:
    return [(name, f"{count:,}") for name, count in entries]


def _row_cells(row: Sums) -> tuple[str, ...]:
    tokens = f"{'≥ ' if row.is_at_least else ''}{row.tokens.total:,}" if row.tokens is not None else ""
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
    """Return a path as inline code in a table, where a pipe is escaped even in code."""
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
