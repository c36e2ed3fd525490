"""The price table, and the cost of tokens: US dollars per million tokens, by model, from a day on.

The table is a file next to this module. The user's own file adds entries or replaces them. A model without
a price is never counted as free.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from backscroll.errors import UsageError
from backscroll.model.statistics import PROMPT_SIZES, Consumption, Tokens, Unpriced
from backscroll.pricing.rates import Rate

_RATES = ("input", "output", "cache_write", "cache_write_1h", "cache_read")
_KEYS = {*_RATES, "models", "from", "fast", "long", "source"}
TOKENS_PER_PRICE = 1_000_000


# Prices


class Price(Struct, frozen=True, kw_only=True):
    """Price of a million tokens of a model, in US dollars."""

    input: float
    output: float
    cache_write: float  # for five minutes
    cache_write_1h: float
    cache_read: float
    since: date | None = None  # first day of this price; None: always
    fast: float | None = None  # factor of the fast class; None if there is none
    long_over: int | None = None  # a prompt with more tokens costs more, all of it
    long_input: float = 1.0
    long_output: float = 1.0
    source: str = ""


class PriceTable:
    """Prices by normalized model name."""

    def __init__(self, prices: Mapping[str, Sequence[Price]], checked: date) -> None:
        self._prices = {name: tuple(sorted(some, key=_first_day)) for name, some in prices.items()}
        self.checked = checked
        self._found: dict[tuple[str, str | None, datetime | None], tuple[Price, float] | None] = {}

    def __contains__(self, model: str) -> bool:
        return self.find(model, None, None) is not None

    @property
    def steps(self) -> tuple[int, ...]:
        """The prompt sizes above which a model costs more."""
        return tuple(sorted({one.long_over for one in self.every() if one.long_over is not None}))

    @property
    def changes(self) -> tuple[datetime, ...]:
        """The times at which a price changed."""
        return tuple(sorted({_start_of(one.since) for one in self.every() if one.since is not None}))

    def find(self, model: str, speed: str | None, at: datetime | None) -> tuple[Price, float] | None:
        """Return the price of a model at a time, and the factor of its speed. Default: the newest price.

        None if the table has no price for this model and speed.
        """
        asked = model, speed, at
        if asked not in self._found:
            self._found[asked] = self._look_up(model, speed, at)
        return self._found[asked]

    def _look_up(self, model: str, speed: str | None, at: datetime | None) -> tuple[Price, float] | None:
        name, word = plain_name(model), ""
        while name not in self._prices:
            name, found = _split_qualifier(name)
            if found is None:
                return None
            word = "fast" if found in ("fast", "priority") else word
        known = self._prices[name]
        price = known[-1]
        if at is not None:
            price = next((one for one in reversed(known) if _is_valid(one, at)), known[0])
        if not word and speed in (None, "standard"):
            return price, 1.0
        if speed not in (None, "standard", "fast", "priority") or price.fast is None:
            return None
        return price, price.fast

    def merged(self, own: "PriceTable") -> "PriceTable":
        """Return this table with the entries of another one, which replace its own."""
        return PriceTable({**self._prices, **own._prices}, max(self.checked, own.checked))

    def every(self) -> Iterable[Price]:
        """Return all prices."""
        return (one for some in self._prices.values() for one in some)


def _first_day(price: Price) -> date:
    return price.since or date.min


def _start_of(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _is_valid(price: Price, at: datetime) -> bool:
    return price.since is None or _start_of(price.since) <= at


@cache
def built_in() -> PriceTable:
    """Return the table of this package."""
    from importlib.resources import files  # start-up: it imports tempfile and zipfile

    text = files("backscroll.pricing").joinpath("prices.toml").read_text("utf-8")
    return _table(tomllib.loads(text), "prices.toml")


def with_own(path: Path | None) -> PriceTable:
    """Return the built-in table with the entries of the user's file, which replace its own.

    Raises `UsageError` if the file cannot be read or is invalid.
    """
    if path is None:
        return built_in()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}. Check the 'prices' setting.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: it is not UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from error
    return built_in().merged(_table(document, str(path)))


def _table(document: dict[str, Any], where: str) -> PriceTable:
    checked = document.get("checked")
    if isinstance(checked, datetime) or not isinstance(checked, date):
        raise UsageError(f"{where}: add the date of the prices, for example checked = 2026-11-16")
    prices: dict[str, list[Price]] = {}
    for place, entry in enumerate(document.get("price", ()), start=1):
        models = entry.get("models") if isinstance(entry, dict) else None
        if not isinstance(models, list) or not models or not all(isinstance(one, str) for one in models):
            raise UsageError(
                f'{where}: [[price]] number {place} has no models. Add for example models = ["gpt-5"]'
            )
        price = _price(entry, f"{where}: the price of {models[0]}")
        for model in models:
            prices.setdefault(plain_name(model), []).append(price)
    return PriceTable(prices, checked)


def _price(entry: dict[str, Any], what: str) -> Price:
    if unknown := sorted(set(entry) - _KEYS):
        raise UsageError(f"{what} has an unknown key {unknown[0]!r}. Valid keys: {', '.join(sorted(_KEYS))}")
    for name in ("input", "output"):
        if name not in entry:
            raise UsageError(f"{what} has no {name!r}. Add it in dollars per million tokens.")
    rates = {name: _number(entry[name], f"{what}: {name}") for name in _RATES if name in entry}
    rates.setdefault("cache_write", rates["input"])
    rates.setdefault("cache_write_1h", rates["cache_write"])
    rates.setdefault("cache_read", rates["input"])
    since = entry.get("from")
    if since is not None and (isinstance(since, datetime) or not isinstance(since, date)):
        raise UsageError(f"{what}: from must be a date, for example from = 2026-03-13")
    long = entry.get("long", {})
    if not isinstance(long, dict) or (long and not isinstance(long.get("over"), int)):
        raise UsageError(
            f"{what}: long must look like long = {{ over = 200_000, input = 2.0, output = 1.5 }}"
        )
    if long and long["over"] not in PROMPT_SIZES:
        sizes = ", ".join(map(str, PROMPT_SIZES))
        raise UsageError(f"{what}: long.over must be one of {sizes}, not {long['over']}")
    return Price(
        **rates,
        since=since,
        fast=_number(entry["fast"], f"{what}: fast") if "fast" in entry else None,
        long_over=long.get("over"),
        long_input=_number(long.get("input", 1.0), f"{what}: long.input"),
        long_output=_number(long.get("output", 1.0), f"{what}: long.output"),
        source=str(entry.get("source", "")),
    )


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise UsageError(f"{what} must be a number of dollars, not {value!r}.")
    return float(value)


# Names of models


_VENDOR = re.compile(r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|google|xai|x-ai|deepseek|moonshotai)\.")
_ENDINGS = (
    re.compile(r"\[[^\]]*\]$"),  # claude-sonnet-4-5[1m]
    re.compile(r"@.*$"),  # claude-sonnet-4@20250514
    re.compile(r"-v\d+(?::\d+)*$"),  # anthropic.claude-…-v1:0
    re.compile(r"[-_]20\d\d-?\d\d-?\d\d$"),
    re.compile(r"-(?:latest|preview(?:-\d\d-\d\d)?|exp(?:-\d\d-\d\d)?)$"),
)
_VERSION = re.compile(r"(?<=\d)\.(?=\d)")
# Cursor writes the version before the family, as Anthropic did until version 3.
_TURNED = re.compile(r"^(?:claude-)?(\d+(?:-\d+)?)-(opus|sonnet|haiku|fable|mythos)(?=-|$)")
_BARE = re.compile(r"^(opus|sonnet|haiku|fable|mythos)(?=-\d)")
# The reasoning effort does not change the price of a token; the speed may.
_QUALIFIERS = frozenset(
    ("thinking", "reasoning", "minimal", "low", "medium", "high", "xhigh", "max", "none", "fast", "priority")
)


def plain_name(model: str) -> str:
    """Return a name without vendor, region, date and interface version, such as claude-opus-4-5."""
    name = _VENDOR.sub("", model.strip().lower().rpartition("/")[2])
    for ending in _ENDINGS:
        name = ending.sub("", name)
    name = _VERSION.sub("-", name)
    name = _TURNED.sub(r"claude-\2-\1", name)
    return _BARE.sub(r"claude-\1", name)


def _split_qualifier(name: str) -> tuple[str, str | None]:
    """Split the last word off a plain name if it is a qualifier; otherwise return None for it."""
    shorter, dash, word = name.rpartition("-")
    return (shorter, word) if dash and word in _QUALIFIERS else (name, None)


# Costs


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


def rates_of(own: Path | None, model: str, speed: str | None) -> Iterator[Rate]:
    """Yield the prices of a model per token, by prompt size and time. The first time is None.

    Without a price, or if the user's file is invalid, the dollars are None: `stats` reports what is wrong
    with the file.
    """
    try:
        table = with_own(own)
    except UsageError:
        table = PriceTable({}, date.min)
    for size_class, prompt in enumerate([0, *(size + 1 for size in PROMPT_SIZES)]):
        for at in (None, *table.changes):
            period = at or datetime.min.replace(tzinfo=UTC)
            one = Consumption(model=model, speed=speed, at=period, prompt=prompt, tokens=Tokens())
            cost = cost_of(one, table)
            usd = tuple(line.rate / TOKENS_PER_PRICE for line in cost.lines) if cost is not None else None
            yield size_class, at, usd
