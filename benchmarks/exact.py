"""Searching for exact text and for patterns, verified on what was said."""

import time
from collections.abc import Iterator
from typing import Literal

from benchmarks.figures import Figure
from benchmarks.stage import Stage

__all__ = ["figures"]

_ASKED: tuple[tuple[str, Literal["exact", "regex"]], ...] = (
    ("return self._", "exact"),
    ("src/part3", "exact"),
    ("ticket-000123", "exact"),
    ("anich(", "exact"),
    ("qzx", "exact"),
    (r"def \w+_ferry\(", "regex"),
    (r"ticket-0001\d+: [A-Z]", "regex"),
    (r"test_\w+_is_\w+ PASSED", "regex"),
)
_RUNS = 3


def figures(stage: Stage) -> Iterator[Figure]:
    slowest: dict[str, float] = {}
    with stage.history() as history:
        for text, kind in _ASKED:
            fastest = float("inf")
            for _ in range(_RUNS):
                start = time.perf_counter()
                history.search_sessions(text, pattern=kind, limit=20)
                fastest = min(fastest, (time.perf_counter() - start) * 1000)
            slowest[kind] = max(slowest.get(kind, 0.0), fastest)
            yield Figure(key=f"{kind} {text}", what=f"--{kind} `{text}`", value=fastest, unit="ms")
    for name, value in slowest.items():
        yield Figure(
            key=name, what=f"--{name}, first page, the slowest of these", value=value, unit="ms", wanted=500
        )
