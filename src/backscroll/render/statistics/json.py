"""Statistics as JSON and CSV, with the same names."""

import csv
import io
from typing import Any

import msgspec

from backscroll.model.dates import iso
from backscroll.model.statistics import Explanation, Report, Reported, Sums, Tokens, Year
from backscroll.model.text import sanitize
from backscroll.render.statistics.reported import difference_reason

__all__ = ["explanation_document", "report_csv", "report_document", "year_document"]


def report_document(report: Report) -> dict[str, Any]:
    """Return the rows as ``data`` and their total as ``total``."""
    return {
        "by": report.by,
        "since": iso(report.since),
        "until": iso(report.until),
        "zone": report.zone,
        "prices_checked": report.prices_checked.isoformat(),
        "data": [_row(row) for row in report.rows],
        "total": _row(report.total),
        "unpriced": [msgspec.structs.asdict(entry) for entry in report.unpriced],
        "undated_messages": report.undated_messages,
        "repeated_messages": report.repeated_messages,
        "uncounted_sessions": report.uncounted_sessions,
        "reported": _reported(report.reported),
    }


def _row(row: Sums) -> dict[str, Any]:
    return {
        "key": row.key,
        "sessions": row.sessions,
        "prompts": row.prompts,
        "messages": row.messages,
        "subagent_messages": row.subagent_messages,
        "active_seconds": row.active_seconds,
        "responses": row.responses,
        **_tokens(row.tokens),
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


def _tokens(tokens: Tokens | None) -> dict[str, int | None]:
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


_TOKEN_NAMES = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_creation_1h_input_tokens",
    "cache_read_input_tokens",
    "total_tokens",
)


def _dollars(usd: float | None) -> float | None:
    """Round to 8 digits, to remove errors of floating-point addition."""
    return round(usd, 8) if usd is not None else None


def _reported(reported: Reported | None) -> dict[str, Any] | None:
    if reported is None:
        return None
    return {
        "sessions": reported.sessions,
        "cost_usd": _dollars(reported.usd),
        "total_tokens": reported.tokens,
        "computed_cost_usd": _dollars(reported.computed_usd),
        "difference_usd": _dollars(reported.difference_usd),
        "reason": difference_reason(reported),
    }


def report_csv(report: Report) -> str:
    """Return a header line and one line per row, or one line with the total."""
    rows = [_row(row) for row in (report.rows if report.by is not None else [report.total])]
    out = io.StringIO()
    names = list(_row(report.total))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([report.by or "all" if name == "key" else name for name in names])
    for row in rows:
        writer.writerow([_cell(row[name]) for name in names])
    return out.getvalue()


def _cell(value: object) -> object:
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
                **_tokens(record.tokens),
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
                **_tokens(charge.tokens),
                "lines": [
                    {"kind": kind, "tokens": tokens, "usd_per_million": rate, "cost_usd": _dollars(usd)}
                    for kind, tokens, rate, usd in charge.lines
                ],
                "cost_usd": _dollars(charge.usd),
            }
            for charge in explanation.charges
        ],
        **_tokens(explanation.tokens),
        "cost_usd": _dollars(explanation.usd),
        "reported": _reported(explanation.reported),
    }


def year_document(year: Year) -> dict[str, Any]:
    """Return a year in review."""
    document: dict[str, Any] = msgspec.to_builtins(year)
    document["total"] = _row(year.total)
    document["months"] = [_row(row) for row in year.months]
    document["projects"] = [_row(row) for row in year.projects]
    return document
