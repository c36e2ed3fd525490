"""Figures in a terminal: the sum of everything as a list, its parts as a table with bars."""

from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo

from msgspec import Struct

from backscroll.model.sanitize import one_line
from backscroll.model.statistics import Report, Sums, Tokens
from backscroll.render.statistics.charts import bar, sparkline
from backscroll.render.terminal.humanize import (
    compact_number,
    format_cost,
    format_duration,
    format_percent,
    format_usd,
)
from backscroll.render.terminal.style import Style
from backscroll.render.terminal.width import cell_width, pad, wrap

__all__ = ["report_lines", "token_lines"]

_GAP = "  "
_LABEL = 14
_KEY = 40  # columns that a name may take
_BAR = 24
_NARROWEST_BAR = 6
_DROPPED = ("accepted", "failed", "lines", "calls", "prompts", "active", "messages", "sessions")
_UNNAMED = {"workspace": "no workspace", "model": "model not said", "tool": "tool not said"}


class _Column(Struct, frozen=True):
    name: str
    cells: Sequence[str]

    @property
    def width(self) -> int:
        return max(map(cell_width, (self.name, *self.cells)))


def report_lines(report: Report, *, style: Style, width: int, zone: tzinfo | None = None) -> Iterator[str]:
    """A report in lines of at most so many columns."""
    yield style("strong", _heading(report, zone))
    yield ""
    if report.by is None:
        yield from _total_lines(report, style)
    else:
        yield from _table_lines(report, style, width)
    notes = list(_notes(report))
    if notes:
        yield ""
        yield from (style("dim", line) for note in notes for line in wrap(note, width))


def _heading(report: Report, zone: tzinfo | None) -> str:
    span = " ".join(
        f"{word} {at.astimezone(zone):%Y-%m-%d %H:%M}".removesuffix(" 00:00")
        for word, at in (("from", report.since), ("until before", report.until))
        if at is not None
    )
    by = f" by {report.by}" if report.by else ""
    many = f"{report.total.sessions:,} session{'s' * (report.total.sessions != 1)}{by}"
    return f"{many}, {span}" if span else many


def _total_lines(report: Report, style: Style) -> Iterator[str]:
    total = report.total
    yield _fact("Prompts", f"{total.prompts or 0:,}")
    helped = f", and {total.subagent_messages:,} by subagents" if total.subagent_messages else ""
    yield _fact("Messages", f"{total.messages or 0:,}{helped}")
    yield _fact("Active time", format_duration(total.active_seconds) if total.active_seconds else "not known")
    if total.tokens is None:
        yield _fact("Tokens", "nobody counted them")
    else:
        least = "at least " if total.is_at_least else ""
        yield _fact("Tokens", f"{least}{total.tokens.total:,}")
        yield from (_fact("", words) for words in token_lines(total.tokens))
        told = format_cost(total) if total.cost_usd is not None else "no model used has a known price"
        yield _fact(
            "Cost", f"{told} at prices of {report.prices_checked}" if total.cost_usd is not None else told
        )
    if total.reported_usd is not None:
        yield _fact(
            "", f"{format_usd(total.reported_usd)} is what the tools themselves said of some responses"
        )
    yield _fact("Lines", f"+{total.lines_added or 0:,} -{total.lines_removed or 0:,}")
    if total.acceptance_rate is not None:
        yield _fact("Edits", f"{format_percent(total.acceptance_rate)} of {total.edits_decided:,} accepted")
    calls, failures = total.tool_calls or 0, total.tool_failures or 0
    failed = f", {failures:,} failed ({format_percent(failures / calls)})" if failures else ""
    yield _fact("Tool calls", f"{calls:,}{failed}")
    if len(report.timeline) > 1:
        first, last = report.timeline[0][0], report.timeline[-1][0]
        span = "month" if len(first) == 7 else "week" if "W" in first else "day"
        line = style("accent", sparkline([count for _, count in report.timeline]))
        yield ""
        yield f"{first} {line} {last}"
        yield style("dim", f"messages by {span}, {max(count for _, count in report.timeline):,} at most")


def token_lines(tokens: Tokens) -> Iterator[str]:
    """The kinds of tokens that there are, a line each."""
    for name, count in (
        ("given", tokens.input),
        ("answered", tokens.output),
        ("written to a cache for 5 minutes", tokens.cache_write),
        ("written to a cache for an hour", tokens.cache_write_1h),
        ("read from a cache", tokens.cache_read),
    ):
        if count:
            yield f"{count:,} {name}"


def _fact(label: str, told: str) -> str:
    return f"{label:<{_LABEL}}{told}"


def _table_lines(report: Report, style: Style, width: int) -> Iterator[str]:
    rows = [*report.rows, report.total] if len(report.rows) > 1 else list(report.rows)
    names = [_name(row, report) for row in report.rows] + ["together"] * (len(report.rows) > 1)
    columns = [_Column(name, [told(row) for row in rows]) for name, told in _columns()]
    columns = [column for column in columns if any(column.cells[: len(report.rows)])]
    dropped = list(_DROPPED)
    key = min(max(map(cell_width, names), default=0), _KEY)

    def room() -> int:
        return width - key - sum(column.width + len(_GAP) for column in columns) - len(_GAP)

    while room() < _NARROWEST_BAR and dropped:
        columns = [column for column in columns if column.name != dropped[0]]
        dropped.pop(0)
    key = min(key, max(key + room() - _NARROWEST_BAR, 10))
    length = min(_BAR, max(room(), 0))
    sizes = [_size(row) for row in report.rows]
    measure = "by calls" if report.by == "tool" else "by messages"
    heads = [" " * key, *(pad(one.name, one.width, is_right=True) for one in columns)]
    heads += [measure] if length >= len(measure) else []
    yield style("dim", _GAP.join(heads))
    for place, name in enumerate(names):
        is_total = place == len(report.rows)
        cells_ = [pad(one.cells[place], one.width, is_right=True) for one in columns]
        chart = "" if is_total else bar(sizes[place], max(sizes), length)
        line = _GAP.join([pad(name, key), *cells_])
        yield style("strong", line) if is_total else f"{line}{_GAP}{style('accent', chart)}".rstrip()


def _size(row: Sums) -> int:
    """What a bar stands for: messages, or calls where these are not told apart."""
    return row.messages if row.messages is not None else row.tool_calls or 0


def _columns() -> list[tuple[str, Callable[[Sums], str]]]:
    """Every column; one that is empty in all rows is left out."""
    return [
        ("sessions", lambda row: f"{row.sessions:,}"),
        ("prompts", lambda row: _count(row.prompts)),
        ("messages", lambda row: _count(row.messages)),
        ("active", lambda row: format_duration(row.active_seconds) if row.active_seconds else ""),
        ("tokens", lambda row: compact_number(row.tokens.total) if row.tokens is not None else ""),
        ("cost", format_cost),
        ("lines", _lines),
        (
            "accepted",
            lambda row: format_percent(row.acceptance_rate) if row.acceptance_rate is not None else "",
        ),
        ("calls", lambda row: _count(row.tool_calls)),
        ("failed", lambda row: f"{row.tool_failures:,}" if row.tool_failures else ""),
    ]


def _count(number: int | None) -> str:
    return f"{number:,}" if number is not None else ""


def _lines(row: Sums) -> str:
    if not row.lines_added and not row.lines_removed:
        return ""
    return f"+{compact_number(row.lines_added or 0)} -{compact_number(row.lines_removed or 0)}"


def _name(row: Sums, report: Report) -> str:
    if row.key is None:
        return _UNNAMED.get(report.by or "", "no date")
    name = one_line(row.key, 300)
    return name if len(name) <= _KEY else f"…{name[1 - _KEY :]}"


def _notes(report: Report) -> Iterator[str]:
    if report.unpriced:
        named = ", ".join(
            f"{one_line(one.model or 'a model that was not named', 60)}"
            f"{f' ({one.speed})' if one.speed else ''} with {one.tokens:,} tokens"
            for one in report.unpriced
        )
        yield f"Without a known price, and in no cost: {named}."
    if report.uncounted_sessions and report.by != "tool":
        many = f"{report.uncounted_sessions:,} session{'s' * (report.uncounted_sessions != 1)}"
        yield f"Of {many} the tool did not say how many tokens were used; what they cost is in no sum."
    if report.total.is_at_least and report.by not in (None, "tool"):
        yield "Some responses were counted before they had ended: it is at least so many tokens."
    if report.undated_messages and report.by in ("day", "week", "month"):
        yield f"{report.undated_messages:,} messages have no time."
    if report.by in ("day", "week", "month"):
        yield f"Days are those of {report.zone}; a session counts in each that it was held in."
