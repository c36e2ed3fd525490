"""Distributions of sizes, given by some of their quantiles."""

from bisect import bisect_right
from math import exp, log
from random import Random


class SizeDistribution:
    """Distribution with given quantiles, log-linear between them. A point is a share and a size."""

    def __init__(self, *points: tuple[float, float]) -> None:
        self._shares = [share for share, _ in points]
        self._logs = [log(size) for _, size in points]

    def quantile(self, share: float) -> int:
        """Return the size that is larger than this share of all sizes."""
        right = min(max(bisect_right(self._shares, share), 1), len(self._shares) - 1)
        low, high = self._shares[right - 1], self._shares[right]
        weight = (share - low) / (high - low)
        return int(exp(self._logs[right - 1] + weight * (self._logs[right] - self._logs[right - 1])))

    def sample(self, rng: Random) -> int:
        return self.quantile(rng.random())
