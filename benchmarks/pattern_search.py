"""In-process search with ``--exact`` and ``--regex``."""

import time
from collections.abc import Iterator
from typing import Literal

from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.result_table import Result

_PATTERNS: tuple[tuple[str, Literal["exact", "regex"]], ...] = (
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


def measure(context: BenchmarkContext) -> Iterator[Result]:
    slowest: dict[str, float] = {}
    with context.open_history() as history:
        for text, kind in _PATTERNS:
            fastest = float("inf")
            for _ in range(_RUNS):
                start = time.perf_counter()
                history.search_sessions(text, pattern=kind, limit=20)
                fastest = min(fastest, (time.perf_counter() - start) * 1000)
            slowest[kind] = max(slowest.get(kind, 0.0), fastest)
            yield Result(key=f"{kind} {text}", label=f"--{kind} `{text}`", value=fastest, unit="ms")
    for name, milliseconds in slowest.items():
        yield Result(key=name, label=f"--{name}, slowest pattern", value=milliseconds, unit="ms", target=500)
