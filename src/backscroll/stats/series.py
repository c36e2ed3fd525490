"""Sums by period and group: the parts of stacked bars."""

from collections import Counter, defaultdict
from datetime import tzinfo

from backscroll.archive.query.statistics import Statistics
from backscroll.model.statistics import By, Series, SeriesGroup
from backscroll.pricing.prices import PriceTable
from backscroll.stats.accumulators import RowSums
from backscroll.stats.calendar import period_namer

__all__ = ["add_up_series"]


def add_up_series(
    counted: Statistics,
    prices: PriceTable,
    *,
    period: By,
    by: SeriesGroup,
    max_groups: int,
    zone: tzinfo | None = None,
) -> Series:
    """Return the sums of the largest groups; all others are one group without a name.

    A group of sources or workspaces is large by its messages, a model by its tokens. Messages and lines have
    no model.
    """
    named = period_namer(str(period), zone)
    places: dict[int, str | None] = {}
    if by != "model":
        places = {
            id_: one.source if by == "source" else one.workspace_path for id_, one in counted.sessions.items()
        }
    sizes: Counter[str | None] = Counter()
    if by == "model":
        for spent in counted.tokens(prices.steps, prices.changes, by_session=True, by_bucket=True):
            sizes[spent.price_class.model] += sum(spent.counts[1:])
    else:
        for done in counted.activity():
            sizes[places[done.session_id]] += done.messages
    groups = tuple(name for name, size in sizes.most_common() if name is not None and size)[:max_groups]
    large = frozenset(groups)
    sums: defaultdict[tuple[str, str | None], RowSums] = defaultdict(RowSums)
    for done in counted.activity() if by != "model" else ():
        name, group = named(done.bucket), places[done.session_id]
        if name is not None:
            sums[name, group if group in large else None].add_activity(done)
    for spent in counted.tokens(prices.steps, prices.changes, by_session=True, by_bucket=True):
        name = named(spent.bucket)
        group = spent.price_class.model if by == "model" else places[spent.session_id or 0]
        if name is not None:
            row = sums[name, group if group in large else None]
            row.tokens.add(spent)
            if by == "model" and spent.session_id is not None:
                row.sessions.add(spent.session_id)
    return Series(by=by, groups=groups, sums={key: row.sums(prices, key[0]) for key, row in sums.items()})
