"""What tokens cost, line by line."""

from collections.abc import Iterable

from msgspec import Struct

from backscroll.model.statistics import Consumption, Tokens, Unpriced
from backscroll.pricing.prices import PriceTable

__all__ = ["Bill", "Cost", "Line", "bill_of", "cost_of"]

_MILLION = 1_000_000


class Line(Struct, frozen=True):
    """One kind of token: so many, at so much a million."""

    kind: str
    tokens: int
    rate: float

    @property
    def usd(self) -> float:
        return self.tokens * self.rate / _MILLION


class Cost(Struct, frozen=True):
    """The arithmetic of a price, and its sum in US dollars."""

    lines: tuple[Line, ...]

    @property
    def usd(self) -> float:
        return sum(line.usd for line in self.lines)


class Bill(Struct, frozen=True, kw_only=True):
    """What many responses took and cost together."""

    responses: int
    tokens: Tokens | None  # None when nobody counted
    usd: float | None  # of what has a price; None when nothing has
    reported_usd: float | None  # what the tools themselves said
    is_at_least: bool
    unpriced: tuple[Unpriced, ...]  # the one with most tokens first


def bill_of(consumed: Iterable[Consumption], table: PriceTable) -> Bill:
    """Add up what was consumed; what has no price is named and in no cost."""
    responses, tokens, is_at_least = 0, Tokens(), False
    usd: float | None = None
    reported: float | None = None
    unpriced: dict[tuple[str | None, str | None], Unpriced] = {}
    for one in consumed:
        responses += one.responses
        tokens += one.tokens
        is_at_least = is_at_least or one.is_at_least
        if one.reported_usd is not None:
            reported = (reported or 0.0) + one.reported_usd
        cost = cost_of(one, table)
        if cost is not None:
            usd = (usd or 0.0) + cost.usd
        elif one.tokens.total:
            known = unpriced.get((one.model, one.speed))
            unpriced[one.model, one.speed] = Unpriced(
                model=one.model,
                speed=one.speed,
                responses=one.responses + (known.responses if known else 0),
                tokens=one.tokens.total + (known.tokens if known else 0),
            )
    return Bill(
        responses=responses,
        tokens=tokens if responses else None,
        usd=usd,
        reported_usd=reported,
        is_at_least=is_at_least,
        unpriced=tuple(sorted(unpriced.values(), key=lambda one: (-one.tokens, one.model or ""))),
    )


def cost_of(consumption: Consumption, table: PriceTable) -> Cost | None:
    """What was consumed at the price of its day; None when its model has no price, or has no name."""
    found = table.find(consumption.model, consumption.speed, consumption.at) if consumption.model else None
    if found is None:
        return None
    price, factor = found
    is_long = price.long_over is not None and consumption.prompt > price.long_over
    given = factor * (price.long_input if is_long else 1.0)
    output = factor * (price.long_output if is_long else 1.0)
    tokens = consumption.tokens
    return Cost(
        (
            Line("input", tokens.input, price.input * given),
            Line("output", tokens.output, price.output * output),
            Line("cache_write", tokens.cache_write, price.cache_write * given),
            Line("cache_write_1h", tokens.cache_write_1h, price.cache_write_1h * given),
            Line("cache_read", tokens.cache_read, price.cache_read * given),
        )
    )
