"""Usage statistics for terminals: totals as a list, groups as a table with bars."""

from collections.abc import Callable, Iterator, Sequence
from datetime import tzinfo

from msgspec import Struct

from backscroll.model.statistics import Report, Sums, Tokens
from backscroll.model.text import one_line, pluralize
from backscroll.render.statistics.charts import bar, sparkline
from backscroll.render.statistics.reported import difference_reason, reported_line
from backscroll.render.terminal.humanize import (
    compact_number,
    format_cost,
    format_duration,
    format_percent,
)
from backscroll.render.terminal.style import Style
from backscroll.render.terminal.width import cell_width, pad, wrap

__all__ = ["report_lines", "token_lines"]

_GAP = "  "
_LABEL_WIDTH = 14
_MAX_KEY_WIDTH = 40
_MIN_KEY_WIDTH = 10
_MAX_BAR_WIDTH = 24
_MIN_BAR_WIDTH = 6
# Columns to drop on a narrow terminal, in this order.
_DROP_ORDER = ("accepted", "failed", "lines", "calls", "prompts", "active", "messages", "sessions")
_UNKNOWN_KEYS = {"workspace": "no workspace", "model": "unknown model", "tool": "unknown tool"}


class _Column(Struct, frozen=True):
    name: str
    cells: Sequence[str]

    @property
    def width(self) -> int:
        return max(map(cell_width, (self.name, *self.cells)))


def report_lines(report: Report, *, style: Style, width: int, zone: tzinfo | None = None) -> Iterator[str]:
    """Yield a report in lines of at most `width` cells."""
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
    period = " ".join(
        f"{word} {at.astimezone(zone):%Y-%m-%d %H:%M}".removesuffix(" 00:00")
        for word, at in (("from", report.since), ("before", report.until))
        if at is not None
    )
    by = f" by {report.by}" if report.by else ""
    sessions = f"{pluralize(report.total.sessions, 'session')}{by}"
    return f"{sessions}, {period}" if period else sessions


def _total_lines(report: Report, style: Style) -> Iterator[str]:
    total = report.total
    yield _field("Prompts", f"{total.prompts or 0:,}")
    subagents = f" (plus {total.subagent_messages:,} by subagents)" if total.subagent_messages else ""
    yield _field("Messages", f"{total.messages or 0:,}{subagents}")
    yield _field("Active time", format_duration(total.active_seconds) if total.active_seconds else "unknown")
    if total.tokens is None:
        yield _field("Tokens", "unknown (no token counts)")
    else:
        at_least = "at least " if total.is_at_least else ""
        yield _field("Tokens", f"{at_least}{total.tokens.total:,}")
        yield from (_field("", line) for line in token_lines(total.tokens))
        is_priced = total.cost_usd is not None
        prices = f"{format_cost(total)} (prices of {report.prices_checked})"
        yield _field("Cost", prices if is_priced else "unknown (no price for the models used)")
    if report.reported is not None:
        yield _field("", reported_line(report.reported))
    yield _field("Lines", f"+{total.lines_added or 0:,} -{total.lines_removed or 0:,}")
    if total.acceptance_rate is not None:
        yield _field("Edits", f"{format_percent(total.acceptance_rate)} of {total.edits_decided:,} accepted")
    calls, failures = total.tool_calls or 0, total.tool_failures or 0
    failed = f", {failures:,} failed ({format_percent(failures / calls)})" if failures else ""
    yield _field("Tool calls", f"{calls:,}{failed}")
    if len(report.timeline) > 1:
        first, last = report.timeline[0][0], report.timeline[-1][0]
        period = "month" if len(first) == 7 else "week" if "W" in first else "day"
        line = style("accent", sparkline([count for _, count in report.timeline]))
        yield ""
        yield f"{first} {line} {last}"
        yield style("dim", f"messages per {period}, maximum {max(count for _, count in report.timeline):,}")


def token_lines(tokens: Tokens) -> Iterator[str]:
    """Yield one line per kind of token with a count above zero."""
    for name, count in (
        ("input", tokens.input),
        ("output", tokens.output),
        ("cache write (5 minutes)", tokens.cache_write),
        ("cache write (1 hour)", tokens.cache_write_1h),
        ("cache read", tokens.cache_read),
    ):
        if count:
            yield f"{count:,} {name}"


def _field(label: str, text: str) -> str:
    return f"{label:<{_LABEL_WIDTH}}{text}"


def _table_lines(report: Report, style: Style, width: int) -> Iterator[str]:
    has_total = len(report.rows) > 1
    rows = [*report.rows, report.total] if has_total else list(report.rows)
    keys = [_key(row, report) for row in report.rows] + ["Total"] * has_total
    columns = [_Column(name, [cell(row) for row in rows]) for name, cell in _columns()]
    columns = [column for column in columns if any(column.cells[: len(report.rows)])]
    dropped = list(_DROP_ORDER)
    key_width = min(max(map(cell_width, keys), default=0), _MAX_KEY_WIDTH)

    def unused() -> int:
        return width - key_width - sum(column.width + len(_GAP) for column in columns) - len(_GAP)

    while unused() < _MIN_BAR_WIDTH and dropped:
        columns = [column for column in columns if column.name != dropped[0]]
        dropped.pop(0)
    key_width = min(key_width, max(key_width + unused() - _MIN_BAR_WIDTH, _MIN_KEY_WIDTH))
    bar_width = min(_MAX_BAR_WIDTH, max(unused(), 0))
    sizes = [_bar_value(row) for row in report.rows]
    measure = "by calls" if report.by == "tool" else "by messages"
    headings = [" " * key_width, *(pad(column.name, column.width, is_right=True) for column in columns)]
    headings += [measure] if bar_width >= len(measure) else []
    yield style("dim", _GAP.join(headings))
    for index, key in enumerate(keys):
        cells = [pad(column.cells[index], column.width, is_right=True) for column in columns]
        line = _GAP.join([pad(key, key_width), *cells])
        if index == len(report.rows):
            yield style("strong", line)
            continue
        chart = bar(sizes[index], max(sizes), bar_width)
        yield f"{line}{_GAP}{style('accent', chart)}".rstrip()


def _bar_value(row: Sums) -> int:
    """Return messages, or tool calls where messages are not counted by group."""
    return row.messages if row.messages is not None else row.tool_calls or 0


def _columns() -> list[tuple[str, Callable[[Sums], str]]]:
    """Return name and content of every column. Columns that are empty in all rows are left out."""
    return [
        ("sessions", lambda row: f"{row.sessions:,}"),
        ("prompts", lambda row: _count(row.prompts)),
        ("messages", lambda row: _count(row.messages)),
        ("active", lambda row: format_duration(row.active_seconds) if row.active_seconds else ""),
        ("tokens", lambda row: compact_number(row.tokens.total) if row.tokens is not None else ""),
        ("cost", format_cost),
        ("lines", _changed_lines),
        ("accepted", _acceptance),
        ("calls", lambda row: _count(row.tool_calls)),
        ("failed", lambda row: f"{row.tool_failures:,}" if row.tool_failures else ""),
    ]


def _count(count: int | None) -> str:
    return f"{count:,}" if count is not None else ""


def _changed_lines(row: Sums) -> str:
    if not row.lines_added and not row.lines_removed:
        return ""
    return f"+{compact_number(row.lines_added or 0)} -{compact_number(row.lines_removed or 0)}"


def _acceptance(row: Sums) -> str:
    return format_percent(row.acceptance_rate) if row.acceptance_rate is not None else ""


def _key(row: Sums, report: Report) -> str:
    if row.key is None:
        return _UNKNOWN_KEYS.get(report.by or "", "no date")
    key = one_line(row.key, 300)
    return key if len(key) <= _MAX_KEY_WIDTH else f"…{key[1 - _MAX_KEY_WIDTH :]}"


def _notes(report: Report) -> Iterator[str]:
    if report.unpriced:
        models = ", ".join(
            f"{one_line(entry.model or 'unknown model', 60)} "
            f"({f'{entry.speed}, ' if entry.speed else ''}{pluralize(entry.tokens, 'token')})"
            for entry in report.unpriced
        )
        yield f"No known price, excluded from the cost: {models}."
    if report.by is None and report.reported is not None:
        reason = difference_reason(report.reported)
        yield from [reason] if reason is not None else []
    if report.repeated_messages and report.by is None:
        noun = "is a copy" if report.repeated_messages == 1 else "are copies"
        copies = pluralize(report.repeated_messages, "message")
        yield f"{copies} in resumed or forked sessions {noun} and not counted."
    if report.uncounted_sessions and report.by != "tool":
        is_one = report.uncounted_sessions == 1
        verbs = "has no token counts and is" if is_one else "have no token counts and are"
        yield f"{pluralize(report.uncounted_sessions, 'session')} {verbs} excluded."
    if report.total.is_at_least and report.by not in (None, "tool"):
        yield "Some responses were counted before they were complete: token counts are minimums."
    if report.undated_messages and report.by in ("day", "week", "month"):
        verb = "has" if report.undated_messages == 1 else "have"
        yield f"{pluralize(report.undated_messages, 'message')} {verb} no timestamp."
    if report.by == "model":
        yield "Rows include subagents. Messages without a model, such as prompts, are in the total only."
    if report.by in ("day", "week", "month"):
        yield f"Time zone: {report.zone}. A session counts in every {report.by} in which it was active."
