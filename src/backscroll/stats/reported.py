"""Cost that the tools report, next to the computed cost of the same sessions."""

from backscroll.archive.query.statistics import Statistics
from backscroll.model.statistics import Reported
from backscroll.pricing.costs import bill_of
from backscroll.pricing.prices import PriceTable
from backscroll.stats.accumulators import TokenSums

__all__ = ["reported_cost"]


def reported_cost(counted: Statistics, prices: PriceTable) -> Reported | None:
    """Return the reported cost of all sessions that have one: totals of sessions and costs of responses.

    Totals of sessions include requests that no record contains.
    """
    increments = list(counted.reported())
    usd = sum(increment.usd for increment in increments)
    sessions = {increment.session_id for increment in increments}
    spent = list(counted.tokens(prices.steps, prices.changes, by_session=True))
    by_response = [one for one in spent if one.reported_usd is not None]
    sessions |= {one.session_id for one in by_response if one.session_id is not None}
    if not sessions:
        return None
    computed = TokenSums()
    for one in spent:
        if one.session_id in sessions:
            computed.add(one)
    return Reported(
        sessions=len(sessions),
        usd=usd + sum(one.reported_usd or 0 for one in by_response),
        tokens=sum(increment.tokens for increment in increments) or None,
        computed_usd=bill_of(computed.consumed(), prices).usd,
    )
