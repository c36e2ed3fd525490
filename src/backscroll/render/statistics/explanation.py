"""How a sum comes about, in a terminal: a line per usage record, then the arithmetic."""

from collections import Counter
from collections.abc import Iterator
from datetime import tzinfo
from itertools import groupby
from pathlib import PurePath

from backscroll.model.sanitize import one_line
from backscroll.model.statistics import Charge, Explanation, UsageRecord
from backscroll.render.terminal.style import Style

__all__ = ["explanation_lines"]

_NAMES = {
    "input": "given",
    "output": "answered",
    "cache_write": "cache, 5 minutes",
    "cache_write_1h": "cache, an hour",
    "cache_read": "cache, read",
}
_HEAD = f"{'':19}  {'':16}  {'given':>9} {'answered':>9} {'cache 5m':>9} {'cache 1h':>9} {'read':>11}"


def explanation_lines(told: Explanation, *, style: Style, zone: tzinfo | None = None) -> Iterator[str]:
    """Every usage record with what became of it, and how the cost of those that count adds up."""
    fates = Counter(record.fate for record in told.records)
    parts = ", ".join(f"{fate} {count:,}" for fate, count in fates.most_common())
    yield style("strong", f"How the tokens of {one_line(told.what, 300)} add up")
    if not told.records:
        yield "There is no usage record: nobody counted them."
        return
    records = "record" if len(told.records) == 1 else "records"
    yield f"{len(told.records):,} usage {records}: {parts}"
    for (ref, agent), group in groupby(told.records, key=lambda one: (one.session_ref, one.agent_id)):
        yield ""
        yield style("title", one_line(f"{ref} · subagent {agent}" if agent else ref, 300))
        yield style("dim", _HEAD)
        for record in group:
            line = _record_line(record, zone)
            yield line if record.fate == "counted" else style("dim", line)
    for charge in told.charges:
        yield ""
        yield from _charge_lines(charge, style)
    yield ""
    yield style("strong", _sum(told))
    yield style("dim", f"Times are those of {told.zone}.")


def _record_line(record: UsageRecord, zone: tzinfo | None) -> str:
    at = f"{record.at.astimezone(zone):%Y-%m-%d %H:%M:%S}" if record.at is not None else "time unknown"
    tokens = record.tokens
    counts = (
        f"{tokens.input:>9,} {tokens.output:>9,} {tokens.cache_write:>9,} {tokens.cache_write_1h:>9,}"
        f" {tokens.cache_read:>11,}"
    )
    least = "counted before it had ended" if record.is_at_least else ""
    notes = "; ".join(filter(None, (record.reason, least)))
    return f"{at:<19}  {record.fate:<16}  {counts}  {_place(record)}{f'  ({notes})' if notes else ''}"


def _place(record: UsageRecord) -> str:
    if record.origin is None:
        return "a record without a message"
    return one_line(f"{PurePath(record.origin.path).name} {record.origin.place}", 120)


def _charge_lines(charge: Charge, style: Style) -> Iterator[str]:
    model = one_line(charge.model or "a model that was not named", 80)
    marks = [f"{charge.speed} class" if charge.speed else "", "long prompts" if charge.is_long else ""]
    many = f"{charge.responses:,} response{'s' * (charge.responses != 1)}"
    yield style("title", ", ".join(filter(None, (model, *marks, many))))
    if charge.usd is None:
        yield f"  {charge.tokens.total:,} tokens without a known price, in no cost"
        return
    for kind, tokens, rate, usd in charge.lines:
        yield f"  {_NAMES[kind]:<16} {tokens:>13,} × ${rate:<9,.4g} a million = ${usd:>12,.6f}"
    yield f"  {'':16} {charge.tokens.total:>13,} {'':24} ${charge.usd:>12,.6f}"


def _sum(told: Explanation) -> str:
    unpriced = sum(one.tokens.total for one in told.charges if one.usd is None)
    priced = (
        f"${told.usd:,.6f} at prices of {told.prices_checked}" if told.usd is not None else "no known price"
    )
    without = f", without the {unpriced:,} tokens that have none" if unpriced and told.usd is not None else ""
    return f"Together {told.tokens.total:,} tokens, {priced}{without}"
