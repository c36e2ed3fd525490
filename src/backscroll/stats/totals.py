"""Totals of sessions, and by day, week, month, source, workspace, model or tool."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

from backscroll.archive.derive.rollups import BUCKET_MS
from backscroll.archive.query.statistics import ActivityTotals, Statistics
from backscroll.model.statistics import By, Report, Sums
from backscroll.pricing.costs import bill_of
from backscroll.pricing.prices import PriceTable
from backscroll.stats.accumulators import RowSums
from backscroll.stats.calendar import period_namer, zone_name
from backscroll.stats.reported import reported_cost

__all__ = ["add_up"]

_SPANS = ("day", "week", "month")
MAX_TIMELINE_COLUMNS = 60


def add_up(
    counted: Statistics,
    prices: PriceTable,
    *,
    by: By | None = None,
    zone: tzinfo | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Report:
    """Return the report. Days are those of the zone, or of this machine."""
    total = RowSums()
    rows: defaultdict[str | None, RowSums] = defaultdict(RowSums)
    is_span, is_place = by in _SPANS, by in ("source", "workspace")
    key = _keys(counted, by, zone)
    done = list(counted.activity())
    for one in done:
        total.add_activity(one)
        if is_span or is_place:
            rows[key(one.session_id, one.bucket)].add_activity(one)
    for spent in counted.tokens(
        prices.steps, prices.changes, by_session=is_place or by == "model", by_bucket=is_span
    ):
        total.tokens.add(spent)
        if by is None or by == "tool":
            continue
        row = rows[spent.price_class.model if by == "model" else key(spent.session_id, spent.bucket)]
        row.tokens.add(spent)
        if spent.session_id is not None:
            row.sessions.add(spent.session_id)
    for increment in counted.reported():
        total.add_reported(increment.usd)
        if by is None or by == "tool":
            continue
        bucket = increment.at // BUCKET_MS if increment.at is not None else None
        name = increment.model if by == "model" else key(increment.session_id, bucket)
        rows[name].add_reported(increment.usd)
        rows[name].sessions.add(increment.session_id)
    if by in ("tool", "model"):
        for part in counted.by_tool() if by == "tool" else counted.by_model():
            rows[part.name].add_group(part)
    if is_place and since is None and until is None:
        for number in counted.sessions:
            rows[key(number, None)].sessions.add(number)
    held = total.sessions if since is not None or until is not None else counted.sessions
    has_span = since is not None or until is not None
    sums = total.sums(prices, None, sessions=None if has_span else len(counted.sessions))
    return Report(
        by=by,
        total=sums,
        rows=_ordered([row.sums(prices, name, by) for name, row in rows.items()], by),
        unpriced=bill_of(total.tokens.consumed(), prices).unpriced,
        prices_checked=prices.checked,
        zone=zone_name(zone),
        since=since,
        until=until,
        timeline=_timeline(done, zone),
        uncounted_sessions=sum(not counted.sessions[number].has_tokens for number in held),
        undated_messages=sum(one.messages for one in done if one.bucket is None),
        repeated_messages=None
        if has_span
        else sum(one.message_count for one in counted.sessions.values()) - sum(one.messages for one in done),
        reported=reported_cost(counted, prices) if sums.reported_usd is not None else None,
    )


def _keys(
    counted: Statistics, by: By | None, zone: tzinfo | None
) -> Callable[[int | None, int | None], str | None]:
    """Return a function from session and 15-minute bucket to the key of a row."""
    if by in _SPANS:
        named = period_namer(str(by), zone)
        return lambda _, quarter: named(quarter)
    places = {
        number: one.source if by == "source" else one.workspace_path
        for number, one in counted.sessions.items()
    }
    return lambda session, _: places[session] if session is not None else None


def _ordered(rows: Sequence[Sums], by: By | None) -> tuple[Sums, ...]:
    """Sort days by date, other rows by size. The row without a key comes last."""
    if by in _SPANS:
        return tuple(sorted(rows, key=lambda row: (row.key is None, row.key)))
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                row.key is None,
                -(row.tokens.total if row.tokens is not None else 0),
                -(row.messages or 0),
                -(row.tool_calls or 0),
                row.key or "",
            ),
        )
    )


def _timeline(done: Sequence[ActivityTotals], zone: tzinfo | None) -> tuple[tuple[str, int], ...]:
    """Return the messages by day, or by week or month if there are too many days, including empty ones."""
    buckets = [one.bucket for one in done if one.bucket is not None and one.messages]
    if not buckets:
        return ()
    first, last = min(buckets), max(buckets)
    for span in _SPANS:
        named = period_namer(span, zone)
        names = dict.fromkeys(named(at) for at in (*range(first, last, 96), last))
        if len(names) <= MAX_TIMELINE_COLUMNS or span == "month":
            break
    counts = {name: 0 for name in names if name is not None}
    for one in done:
        name = named(one.bucket)
        if name in counts:
            counts[name] += one.messages
    return tuple(counts.items())
