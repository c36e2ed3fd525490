"""Usage statistics: reports for terminals, as JSON and as CSV, and the calculation behind a total."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, tzinfo
from itertools import groupby
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.documents import to_document
from backscroll.model.dates import iso
from backscroll.model.statistics import (
    By,
    Charge,
    Explanation,
    Report,
    Reported,
    Sums,
    Tokens,
    Unpriced,
    UsageRecord,
    Year,
)
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.humanize import (
    compact_number,
    format_cost,
    format_duration,
    format_percent,
    format_usd,
)
from backscroll.render.terminal_text import Style, cell_width, pad, wrap

_GAP = "  "
_LABEL_WIDTH = 14
_MAX_KEY_WIDTH = 40
_MIN_KEY_WIDTH = 10
_MAX_BAR_WIDTH = 24
_MIN_BAR_WIDTH = 6
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
# Columns to drop on a narrow terminal, in this order.
_DROP_ORDER = ("accepted", "failed", "lines", "calls", "prompts", "active", "messages", "sessions")
_UNKNOWN_KEYS = {"workspace": "no workspace", "model": "unknown model", "tool": "unknown tool"}
_MIN_DIFFERENCE_USD = 1e-6  # less is rounding


def report_lines(report: Report, *, style: Style, width: int, zone: tzinfo | None = None) -> Iterator[str]:
    """Yield a report in lines of at most `width` cells."""
    yield style("strong", _report_heading(report, zone))
    yield ""
    if report.by is None:
        yield from _total_lines(report, style)
    else:
        yield from _table_lines(report, style, width)
    notes = list(_notes(report))
    if notes:
        yield ""
        yield from (style("dim", line) for note in notes for line in wrap(note, width))


def _report_heading(report: Report, zone: tzinfo | None) -> str:
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
    if total.prompts is not None:
        yield _field("Prompts", f"{total.prompts:,}")
    subagents = f" (plus {total.subagent_messages:,} by subagents)" if total.subagent_messages else ""
    yield _field("Messages", f"{total.messages or 0:,}{subagents}")
    if total.active_seconds is not None:
        active = format_duration(total.active_seconds) if total.active_seconds else "unknown"
        yield _field("Active time", active)
    if total.tokens is None:
        yield _field("Tokens", "unknown (no token counts)")
    else:
        at_least = "at least " if total.is_at_least else ""
        yield _field("Tokens", f"{at_least}{total.tokens.total:,}")
        yield from (_field("", line) for line in _token_lines(total.tokens))
        is_priced = total.cost_usd is not None
        prices = f"{format_cost(total)} (prices of {report.prices_checked})"
        yield _field("Cost", prices if is_priced else "unknown (no price for the models used)")
    if report.reported is not None:
        yield _field("", _reported_line(report.reported))
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


def _token_lines(tokens: Tokens) -> Iterator[str]:
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


class _Column(Struct, frozen=True):
    name: str
    cells: Sequence[str]

    @property
    def width(self) -> int:
        return max(map(cell_width, (self.name, *self.cells)))


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


def uncounted_note(sessions: int) -> str:
    """Return what sums of tokens and cost leave out."""
    verb, whose = ("has", "its") if sessions == 1 else ("have", "their")
    return (
        f"{pluralize(sessions, 'session')} {verb} no token counts: {whose} tokens and cost are not included."
    )


def _notes(report: Report) -> Iterator[str]:
    if report.unpriced:
        models = ", ".join(
            f"{one_line(entry.model or 'unknown model', 60)} "
            f"({f'{entry.speed}, ' if entry.speed else ''}{pluralize(entry.tokens, 'token')})"
            for entry in report.unpriced
        )
        yield f"No known price, excluded from the cost: {models}."
    if report.by is None and report.reported is not None:
        reason = _difference_reason(report.reported)
        yield from [reason] if reason is not None else []
    if report.repeated_messages and report.by is None:
        noun = "is a copy" if report.repeated_messages == 1 else "are copies"
        copies = pluralize(report.repeated_messages, "message")
        yield f"{copies} in resumed or forked sessions {noun} and not counted."
    if report.repeated_subagent_messages and report.by is None:
        noun = "is a copy" if report.repeated_subagent_messages == 1 else "are copies"
        copies = pluralize(report.repeated_subagent_messages, "message")
        yield f"{copies} of subagents {noun} and not counted."
    if report.uncounted_sessions and report.by != "tool":
        yield uncounted_note(report.uncounted_sessions)
    if report.total.is_at_least and report.by not in (None, "tool"):
        yield "Some responses were counted before they were complete: token counts are minimums."
    if report.undated_messages and report.by in ("day", "week", "month"):
        verb = "has" if report.undated_messages == 1 else "have"
        yield f"{pluralize(report.undated_messages, 'message')} {verb} no timestamp."
    if report.by == "model":
        yield "Rows include subagents. Messages without a model, such as prompts, are in the total only."
    if report.by in ("day", "week", "month"):
        yield f"Time zone: {report.zone}. A session counts in every {report.by} in which it was active."


def bar(value: float, largest: float, width: int) -> str:
    """Return a bar of up to `width` cells; at least an eighth of a cell for a value above zero."""
    if largest <= 0 or value <= 0 or width <= 0:
        return ""
    eighths = max(1, round(value / largest * width * 8))
    whole, rest = divmod(min(eighths, width * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def sparkline(values: Sequence[float]) -> str:
    """Return one block per value. Zero is a dot, to distinguish it from a small value."""
    largest = max(values, default=0)
    return "".join(_block(value, largest) for value in values)


def _block(value: float, largest: float) -> str:
    if value <= 0:
        return "·"
    return _HEIGHTS[min(int(value / largest * len(_HEIGHTS)), len(_HEIGHTS) - 1)]


def _reported_line(reported: Reported, *, is_exact: bool = False) -> str:
    """Return the reported cost and its difference from the computed cost in one line."""
    dollars: Callable[[float], str] = "${:,.6f}".format if is_exact else format_usd
    line = f"{dollars(reported.usd)} reported by the tool for {pluralize(reported.sessions, 'session')}"
    difference = reported.difference_usd
    if difference is None:
        return line
    if abs(difference) < _MIN_DIFFERENCE_USD:
        return f"{line}, as computed"
    return f"{line}, {dollars(abs(difference))} {'more' if difference > 0 else 'less'} than computed"


def _difference_reason(reported: Reported) -> str | None:
    """Return why the reported cost differs from the computed cost; None if it does not."""
    difference = reported.difference_usd
    if difference is None or abs(difference) < _MIN_DIFFERENCE_USD:
        return None
    if reported.tokens is None:
        return "The tool computed the reported cost with its prices at that time."
    if difference > 0:
        return (
            "The tool also counts requests that are not in its transcripts: compaction, retries, titles,"
            " web searches and side questions."
        )
    return "The tool does not count answers that were interrupted, or uses other prices."


_TOKEN_KINDS = {
    "input": "input",
    "output": "output",
    "cache_write": "cache write 5m",
    "cache_write_1h": "cache write 1h",
    "cache_read": "cache read",
}
_VERDICTS = {"other account": "other store"}  # the JSON value is kept for compatibility
_RECORD_HEADING = (
    f"{'':19}  {'':16}  {'input':>9} {'output':>9} {'write 5m':>9} {'write 1h':>9} {'cache read':>11}"
)


def explanation_lines(explanation: Explanation, *, style: Style, zone: tzinfo | None = None) -> Iterator[str]:
    """Yield every usage record with its verdict, and the cost of the counted ones."""
    yield style("strong", f"Token usage of {one_line(explanation.what, 300)}")
    records = explanation.records
    if not records:
        yield "No token counts are stored."
        return
    verdicts = Counter(_verdict(record) for record in records)
    parts = ", ".join(f"{verdict} {count:,}" for verdict, count in verdicts.most_common())
    yield f"{pluralize(len(records), 'usage record')}: {parts}"
    for (ref, agent), group in groupby(records, key=lambda record: (record.session_ref, record.agent_id)):
        yield ""
        yield style("title", one_line(f"{ref} · subagent {agent}" if agent else ref, 300))
        yield style("dim", _RECORD_HEADING)
        for record in group:
            line = _record_line(record, zone)
            yield line if record.fate == "counted" else style("dim", line)
    for charge in explanation.charges:
        yield ""
        yield from _charge_lines(charge, style)
    yield ""
    yield style("strong", _explanation_total(explanation))
    if explanation.reported is not None:
        yield _reported_line(explanation.reported, is_exact=True)
        if (reason := _difference_reason(explanation.reported)) is not None:
            yield style("dim", reason)
    yield style("dim", f"Time zone: {explanation.zone}.")


def _verdict(record: UsageRecord) -> str:
    return _VERDICTS.get(record.fate, record.fate)


def _record_line(record: UsageRecord, zone: tzinfo | None) -> str:
    at = f"{record.at.astimezone(zone):%Y-%m-%d %H:%M:%S}" if record.at is not None else "time unknown"
    tokens = record.tokens
    counts = (
        f"{tokens.input:>9,} {tokens.output:>9,} {tokens.cache_write:>9,} {tokens.cache_write_1h:>9,}"
        f" {tokens.cache_read:>11,}"
    )
    incomplete = "counted before the response was complete" if record.is_at_least else ""
    notes = "; ".join(filter(None, (record.reason, incomplete)))
    line = f"{at:<19}  {_verdict(record):<16}  {counts}  {_record_origin(record)}"
    return f"{line}  ({notes})" if notes else line


def _record_origin(record: UsageRecord) -> str:
    if record.origin is None:
        return "(no message)"
    return one_line(f"{PurePath(record.origin.path).name} {record.origin.place}", 120)


def _charge_lines(charge: Charge, style: Style) -> Iterator[str]:
    model = one_line(charge.model or "unknown model", 80)
    notes = [f"{charge.speed} class" if charge.speed else "", "long prompts" if charge.is_long else ""]
    responses = pluralize(charge.responses, "response")
    yield style("title", ", ".join(filter(None, (model, *notes, responses))))
    if charge.usd is None:
        yield f"  {pluralize(charge.tokens.total, 'token')}, no known price: excluded from the cost"
        return
    for kind, tokens, rate, usd in charge.lines:
        yield f"  {_TOKEN_KINDS[kind]:<16} {tokens:>13,} × ${rate:<9,.4g} per million = ${usd:>12,.6f}"
    yield f"  {'Total':<16} {charge.tokens.total:>13,} {'':26} ${charge.usd:>12,.6f}"


def _explanation_total(explanation: Explanation) -> str:
    tokens = f"Total: {pluralize(explanation.tokens.total, 'token')}"
    if explanation.usd is None:
        return f"{tokens}, no known price"
    unpriced = sum(charge.tokens.total for charge in explanation.charges if charge.usd is None)
    excluded = f"; without {pluralize(unpriced, 'token')} that have no price" if unpriced else ""
    return f"{tokens}, ${explanation.usd:,.6f} (prices of {explanation.prices_checked}{excluded})"


_TOKEN_NAMES = (
    "input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_creation_1h_input_tokens",
    "cache_read_input_tokens", "total_tokens",
)  # fmt: skip


class ReportDocument(Struct, frozen=True, kw_only=True):
    """Statistics, as of ``backscroll stats --json``."""

    by: By | None
    since: datetime | None
    until: datetime | None
    zone: str  # time zone of the days
    prices_checked: date  # date of the price table
    data: tuple[dict[str, Any], ...]
    total: dict[str, Any]
    unpriced: tuple[Unpriced, ...]
    undated_messages: int  # included in the counts
    repeated_messages: int | None  # copies in resumed and forked sessions, not counted
    repeated_subagent_messages: int | None  # the same, of subagents
    uncounted_sessions: int  # without token counts
    reported: dict[str, Any] | None  # the cost that the tools report


def report_document(report: Report) -> dict[str, Any]:
    """Return the rows as ``data`` and their total as ``total``."""
    return to_document(
        ReportDocument(
            by=report.by,
            since=report.since,
            until=report.until,
            zone=report.zone,
            prices_checked=report.prices_checked,
            data=tuple(map(_row_document, report.rows)),
            total=_row_document(report.total),
            unpriced=report.unpriced,
            undated_messages=report.undated_messages,
            repeated_messages=report.repeated_messages,
            repeated_subagent_messages=report.repeated_subagent_messages,
            uncounted_sessions=report.uncounted_sessions,
            reported=_reported_document(report.reported),
        )
    )


def _row_document(row: Sums) -> dict[str, Any]:
    return {
        "key": row.key,
        "sessions": row.sessions,
        "prompts": row.prompts,
        "messages": row.messages,
        "subagent_messages": row.subagent_messages,
        "active_seconds": row.active_seconds,
        "responses": row.responses,
        **_token_counts(row.tokens),
        "are_tokens_at_least": row.is_at_least,
        "cost_usd": _dollars(row.cost_usd),
        "unpriced_tokens": row.unpriced_tokens,
        "reported_cost_usd": _dollars(row.reported_usd),
        "lines_added": row.lines_added,
        "lines_removed": row.lines_removed,
        "edits_decided": row.edits_decided,
        "edits_accepted": row.edits_accepted,
        "acceptance_rate": row.acceptance_rate,
        "tool_calls": row.tool_calls,
        "tool_failures": row.tool_failures,
    }


def _token_counts(tokens: Tokens | None) -> dict[str, int | None]:
    """Return the counts by the names of the API. Cache creation includes the 1-hour cache."""
    if tokens is None:
        return dict.fromkeys(_TOKEN_NAMES)
    counts = (
        tokens.input,
        tokens.output,
        tokens.cache_write + tokens.cache_write_1h,
        tokens.cache_write_1h,
        tokens.cache_read,
        tokens.total,
    )
    return dict(zip(_TOKEN_NAMES, counts, strict=True))


def _dollars(usd: float | None) -> float | None:
    """Round to 8 digits, to remove errors of floating-point addition."""
    return round(usd, 8) if usd is not None else None


def _reported_document(reported: Reported | None) -> dict[str, Any] | None:
    if reported is None:
        return None
    return {
        "sessions": reported.sessions,
        "cost_usd": _dollars(reported.usd),
        "total_tokens": reported.tokens,
        "computed_cost_usd": _dollars(reported.computed_usd),
        "difference_usd": _dollars(reported.difference_usd),
        "reason": _difference_reason(reported),
    }


def report_csv(report: Report) -> str:
    """Return a header line and one line per row, or one line with the total."""
    rows = [_row_document(row) for row in (report.rows if report.by is not None else [report.total])]
    out = io.StringIO()
    names = list(_row_document(report.total))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([report.by or "all" if name == "key" else name for name in names])
    for row in rows:
        writer.writerow([_csv_value(row[name]) for name in names])
    return out.getvalue()


def _csv_value(value: object) -> object:
    """Return a value for a spreadsheet. Text that looks like a formula is quoted."""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    text = sanitize(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text


def explanation_document(explanation: Explanation) -> dict[str, Any]:
    """Return every usage record, the charges and the totals."""
    return {
        "what": explanation.what,
        "zone": explanation.zone,
        "prices_checked": explanation.prices_checked.isoformat(),
        "records": [
            {
                "session_ref": record.session_ref,
                "agent_id": record.agent_id,
                "response_id": record.response_id,
                "origin": msgspec.structs.asdict(record.origin) if record.origin is not None else None,
                "at": iso(record.at),
                "model": record.model,
                "speed": record.speed,
                **_token_counts(record.tokens),
                "are_tokens_at_least": record.is_at_least,
                "reported_cost_usd": _dollars(record.reported_usd),
                "fate": record.fate,
                "reason": record.reason,
            }
            for record in explanation.records
        ],
        "charges": [
            {
                "model": charge.model,
                "speed": charge.speed,
                "is_long": charge.is_long,
                "responses": charge.responses,
                **_token_counts(charge.tokens),
                "lines": [
                    {"kind": kind, "tokens": tokens, "usd_per_million": rate, "cost_usd": _dollars(usd)}
                    for kind, tokens, rate, usd in charge.lines
                ],
                "cost_usd": _dollars(charge.usd),
            }
            for charge in explanation.charges
        ],
        **_token_counts(explanation.tokens),
        "cost_usd": _dollars(explanation.usd),
        "reported": _reported_document(explanation.reported),
    }


def year_document(year: Year) -> dict[str, Any]:
    """Return a year in review."""
    document: dict[str, Any] = msgspec.to_builtins(year)
    document["total"] = _row_document(year.total)
    document["months"] = [_row_document(row) for row in year.months]
    document["projects"] = [_row_document(row) for row in year.projects]
    return document
