"""Prices of models per token, for costs that the archive computes. Loads the price table only if asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

_PRICES = Path(__file__).with_name("prices.toml")
# Class of prompt size, first time, and dollars per token: input, output, cache write, for 1 h, cache read.
Rate = tuple[int, "datetime | None", "tuple[float, ...] | None"]


class Rates:
    """The prices of the built-in table and the user's file."""

    def __init__(self, own: Path | None) -> None:
        self._own = own

    @property
    def version(self) -> str:
        """The sizes and times of both files."""
        stats = [path.stat() for path in (_PRICES, self._own) if path is not None and path.exists()]
        return " ".join(f"{status.st_size}-{status.st_mtime_ns}" for status in stats)

    def of_model(self, model: str, speed: str | None) -> Iterator[Rate]:
        """Yield the prices of a model by prompt size and time. See `rates_of`."""
        from backscroll.pricing.prices import rates_of  # start-up: the table takes a quarter of `list`

        return rates_of(self._own, model, speed)
