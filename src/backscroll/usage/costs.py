"""What tokens cost, line by line."""

from msgspec import Struct

from backscroll.model.statistics import Consumption
from backscroll.usage.prices import PriceTable

__all__ = ["Cost", "Line", "cost_of"]

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
