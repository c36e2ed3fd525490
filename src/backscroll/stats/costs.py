"""Cost of each session, and the explanation of a cost: every usage record, and the calculation."""

from collections import defaultdict
from datetime import datetime, tzinfo
from typing import NamedTuple

from msgspec.structs import replace

from backscroll.archive.query.statistics import Statistics
from backscroll.model.statistics import Charge, Consumption, Explanation, Tokens, UsageRecord
from backscroll.pricing.prices import PriceTable, bill_of, cost_of
from backscroll.stats.calendar import period_namer, zone_name
from backscroll.stats.totals import TokenSums, reported_cost


class SessionCost(NamedTuple):
    """Cost of the responses of one model in one month of a session."""

    session_id: int
    model: str | None
    month: str | None
    usd: float | None  # None if the model has no price


def session_costs(
    counted: Statistics, prices: PriceTable, *, zone: tzinfo | None = None
) -> list[SessionCost]:
    """Return the costs of all counted sessions. A cost that the tool reports replaces an unknown one."""
    named = period_namer("month", zone)
    sums: defaultdict[tuple[int, str | None, str | None], TokenSums] = defaultdict(TokenSums)
    for spent in counted.tokens(prices.steps, prices.changes, by_session=True, by_bucket=True):
        assert spent.session_id is not None
        sums[spent.session_id, spent.price_class.model, named(spent.bucket)].add(spent)
    costs: list[SessionCost] = []
    for key, tokens in sums.items():
        bill = bill_of(tokens.consumed(), prices)
        costs.append(SessionCost(*key, bill.usd if bill.usd is not None else bill.reported_usd))
    return costs


def explain(counted: Statistics, prices: PriceTable, what: str, *, zone: tzinfo | None = None) -> Explanation:
    """Return every usage record, and the cost of those that count."""
    records = tuple(counted.usage_records())
    alike: dict[tuple[str | None, str | None, bool, datetime | None], Consumption] = {}
    tokens = Tokens()
    for record in records:
        if record.fate != "counted":
            continue
        tokens += record.tokens
        one = _consumption(record, prices)
        key = one.model, one.speed, _is_long(one, prices), one.at
        known = alike.get(key)
        if known is not None:
            one = replace(known, responses=known.responses + 1, tokens=known.tokens + one.tokens)
        alike[key] = one
    charges = tuple(_charge(one, is_long=is_long, prices=prices) for (_, _, is_long, _), one in alike.items())
    known_costs = [charge.usd for charge in charges if charge.usd is not None]
    return Explanation(
        what=what,
        records=records,
        charges=charges,
        tokens=tokens,
        usd=sum(known_costs) if known_costs else None,
        prices_checked=prices.checked,
        zone=zone_name(zone),
        reported=reported_cost(counted, prices),
    )


def _consumption(record: UsageRecord, prices: PriceTable) -> Consumption:
    """Return the consumption of a record, dated by the last price change before it."""
    past = [change for change in prices.changes if record.at is not None and change <= record.at]
    earliest = datetime.min.replace(tzinfo=prices.changes[0].tzinfo) if prices.changes else None
    tokens = record.tokens
    return Consumption(
        model=record.model,
        speed=record.speed,
        at=None if record.at is None else past[-1] if past else earliest,
        prompt=tokens.input + tokens.cache_write + tokens.cache_write_1h + tokens.cache_read,
        tokens=tokens,
    )


def _is_long(one: Consumption, prices: PriceTable) -> bool:
    found = prices.find(one.model, one.speed, one.at) if one.model else None
    over = found[0].long_over if found is not None else None
    return over is not None and one.prompt > over


def _charge(one: Consumption, *, is_long: bool, prices: PriceTable) -> Charge:
    cost = cost_of(one, prices)
    lines = cost.lines if cost is not None else ()
    return Charge(
        model=one.model,
        speed=one.speed,
        is_long=is_long,
        responses=one.responses,
        tokens=one.tokens,
        lines=tuple((line.kind, line.tokens, line.rate, line.usd) for line in lines if line.tokens),
        usd=cost.usd if cost is not None else None,
    )
