"""Figures for programs: JSON and CSV, under the same names."""

import csv
import io
from typing import Any

import msgspec

from backscroll.model.dates import iso
from backscroll.model.sanitize import sanitize
from backscroll.model.statistics import Explanation, Report, Sums, Tokens, Year

__all__ = ["explanation_document", "report_csv", "report_document", "year_document"]


def report_document(report: Report) -> dict[str, Any]:
    """Rows under ``data``, the sum of everything under ``total``."""
    return {
        "by": report.by,
        "since": iso(report.since),
        "until": iso(report.until),
        "zone": report.zone,
        "prices_checked": report.prices_checked.isoformat(),
        "data": [_row(row) for row in report.rows],
        "total": _row(report.total),
        "unpriced": [msgspec.structs.asdict(one) for one in report.unpriced],
        "undated_messages": report.undated_messages,
        "uncounted_sessions": report.uncounted_sessions,
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
    """Under the names that usage has elsewhere; a cache kept for an hour is part of what was written."""
    if tokens is None:
        return dict.fromkeys(_TOKENS)
    counts = (
        tokens.input,
        tokens.output,
        tokens.cache_write + tokens.cache_write_1h,
        tokens.cache_write_1h,
        tokens.cache_read,
        tokens.total,
    )
    return dict(zip(_TOKENS, counts, strict=True))


_TOKENS = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_creation_1h_input_tokens",
    "cache_read_input_tokens",
    "total_tokens",
)


def _dollars(usd: float | None) -> float | None:
    """Without the crumbs of adding many small numbers."""
    return round(usd, 8) if usd is not None else None


def report_csv(report: Report) -> str:
    """A line per row, or one for the sum of everything; the first names the columns."""
    rows = [_row(row) for row in (report.rows if report.by is not None else [report.total])]
    out = io.StringIO()
    names = list(_row(report.total))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([report.by or "all" if name == "key" else name for name in names])
    for row in rows:
        writer.writerow([_cell(row[name]) for name in names])
    return out.getvalue()


def _cell(value: object) -> object:
    """A value as a spreadsheet reads it: no text of somebody's history is taken for a formula."""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    text = sanitize(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t")) else text


def explanation_document(told: Explanation) -> dict[str, Any]:
    """Every usage record, the arithmetic, and the sums."""
    return {
        "what": told.what,
        "zone": told.zone,
        "prices_checked": told.prices_checked.isoformat(),
        "records": [
            {
                "session_ref": one.session_ref,
                "agent_id": one.agent_id,
                "response_id": one.response_id,
                "origin": msgspec.structs.asdict(one.origin) if one.origin is not None else None,
                "at": iso(one.at),
                "model": one.model,
                "speed": one.speed,
                **_tokens(one.tokens),
                "are_tokens_at_least": one.is_at_least,
                "reported_cost_usd": _dollars(one.reported_usd),
                "fate": one.fate,
                "reason": one.reason,
            }
            for one in told.records
        ],
        "charges": [
            {
                "model": one.model,
                "speed": one.speed,
                "is_long": one.is_long,
                "responses": one.responses,
                **_tokens(one.tokens),
                "lines": [
                    {"kind": kind, "tokens": tokens, "usd_per_million": rate, "cost_usd": _dollars(usd)}
                    for kind, tokens, rate, usd in one.lines
                ],
                "cost_usd": _dollars(one.usd),
            }
            for one in told.charges
        ],
        **_tokens(told.tokens),
        "cost_usd": _dollars(told.usd),
    }


def year_document(year: Year) -> dict[str, Any]:
    """A year in review."""
    document: dict[str, Any] = msgspec.to_builtins(year)
    document["total"] = _row(year.total)
    document["months"] = [_row(row) for row in year.months]
    document["projects"] = [_row(row) for row in year.projects]
    return document
