"""The calculation behind a total: one line per usage record, then tokens times price."""

from collections import Counter
from collections.abc import Iterator
from datetime import tzinfo
from itertools import groupby
from pathlib import PurePath

from backscroll.model.statistics import Charge, Explanation, UsageRecord
from backscroll.model.text import one_line, pluralize
from backscroll.render.statistics.reported import difference_reason, reported_line
from backscroll.render.terminal.style import Style

__all__ = ["explanation_lines"]

_TOKEN_KINDS = {
    "input": "input",
    "output": "output",
    "cache_write": "cache write 5m",
    "cache_write_1h": "cache write 1h",
    "cache_read": "cache read",
}
_VERDICTS = {"other account": "other store"}  # the JSON value is kept for compatibility
_HEADING = f"{'':19}  {'':16}  {'input':>9} {'output':>9} {'write 5m':>9} {'write 1h':>9} {'cache read':>11}"


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
        yield style("dim", _HEADING)
        for record in group:
            line = _record_line(record, zone)
            yield line if record.fate == "counted" else style("dim", line)
    for charge in explanation.charges:
        yield ""
        yield from _charge_lines(charge, style)
    yield ""
    yield style("strong", _total(explanation))
    if explanation.reported is not None:
        yield reported_line(explanation.reported, is_exact=True)
        if (reason := difference_reason(explanation.reported)) is not None:
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
    return f"{at:<19}  {_verdict(record):<16}  {counts}  {_origin(record)}{f'  ({notes})' if notes else ''}"


def _origin(record: UsageRecord) -> str:
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


def _total(explanation: Explanation) -> str:
    tokens = f"Total: {pluralize(explanation.tokens.total, 'token')}"
    if explanation.usd is None:
        return f"{tokens}, no known price"
    unpriced = sum(charge.tokens.total for charge in explanation.charges if charge.usd is None)
    excluded = f"; without {pluralize(unpriced, 'token')} that have no price" if unpriced else ""
    return f"{tokens}, ${explanation.usd:,.6f} (prices of {explanation.prices_checked}{excluded})"
