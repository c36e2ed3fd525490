"""Cost of each session, by model and month."""

from collections import defaultdict
from datetime import tzinfo
from typing import NamedTuple

from backscroll.archive.query.statistics import Statistics
from backscroll.pricing.costs import bill_of
from backscroll.pricing.prices import PriceTable
from backscroll.stats.accumulators import TokenSums
from backscroll.stats.calendar import period_namer

__all__ = ["SessionCost", "session_costs"]


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
