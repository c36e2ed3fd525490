"""Cost calculation, line by line."""

from collections.abc import Iterable

from msgspec import Struct

from backscroll.model.statistics import Consumption, Tokens, Unpriced
from backscroll.pricing.prices import PriceTable

__all__ = ["Bill", "Cost", "Line", "bill_of", "cost_of"]

TOKENS_PER_PRICE = 1_000_000


class Line(Struct, frozen=True):
    """One kind of token: the count, and the price per million."""

    kind: str
    tokens: int
    rate: float

    @property
    def usd(self) -> float:
        return self.tokens * self.rate / TOKENS_PER_PRICE


class Cost(Struct, frozen=True):
    """The lines of a cost, and their sum in US dollars."""

    lines: tuple[Line, ...]

    @property
    def usd(self) -> float:
        return sum(line.usd for line in self.lines)


class Bill(Struct, frozen=True, kw_only=True):
    """Tokens and cost of many responses."""

    responses: int
    tokens: Tokens | None  # None if there are no counts
    usd: float | None  # of models with a price; None if none has
    reported_usd: float | None  # the cost that the tools report
    is_at_least: bool
    unpriced: tuple[Unpriced, ...]  # most tokens first


def bill_of(consumed: Iterable[Consumption], table: PriceTable) -> Bill:
    """Add up consumption. Models without a price are listed and not part of the cost."""
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
    """Return the cost at the price of its day; None if the model is unknown or has no price."""
    found = table.find(consumption.model, consumption.speed, consumption.at) if consumption.model else None
    if found is None:
        return None
    price, factor = found
    is_long = price.long_over is not None and consumption.prompt > price.long_over
    input_factor = factor * (price.long_input if is_long else 1.0)
    output_factor = factor * (price.long_output if is_long else 1.0)
    tokens = consumption.tokens
    return Cost(
        (
            Line("input", tokens.input, price.input * input_factor),
            Line("output", tokens.output, price.output * output_factor),
            Line("cache_write", tokens.cache_write, price.cache_write * input_factor),
            Line("cache_write_1h", tokens.cache_write_1h, price.cache_write_1h * input_factor),
            Line("cache_read", tokens.cache_read, price.cache_read * input_factor),
        )
    )
