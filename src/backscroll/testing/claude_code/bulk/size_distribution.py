"""Sizes in the proportions in which they are met."""

from bisect import bisect_right
from math import exp, log
from random import Random

__all__ = ["Curve"]


class Curve:
    """A distribution known by some of its quantiles, even on a logarithmic scale between them."""

    def __init__(self, *points: tuple[float, float]) -> None:
        self._shares = [share for share, _ in points]
        self._logs = [log(value) for _, value in points]

    def at(self, share: float) -> int:
        """The value that this share of all values stays below."""
        right = min(max(bisect_right(self._shares, share), 1), len(self._shares) - 1)
        low, high = self._shares[right - 1], self._shares[right]
        weight = (share - low) / (high - low)
        return int(exp(self._logs[right - 1] + weight * (self._logs[right] - self._logs[right - 1])))

    def draw(self, rng: Random) -> int:
        return self.at(rng.random())
