"""Searching for words: pages of twenty with snippets, counted, grouped by session."""

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

from backscroll.history import History
from benchmarks.figures import Figure
from benchmarks.measure import share
from benchmarks.stage import Stage

__all__ = ["COMMON", "figures"]

COMMON = "return"
_QUERIES = 60
_RUNS = 3
_SAMPLE = 200_000  # bytes of each of some files
_FILES = 60


def figures(stage: Stage) -> Iterator[Figure]:
    rng = random.Random(2)
    met = _words(rng, stage.root)

    def some(number: int) -> list[str]:
        return [" ".join(rng.sample(met, number)) for _ in range(_QUERIES)]

    kinds = {
        "one word": some(1),
        "two words": some(2),
        "three words": some(3),
        "two words and a role": [f"{pair} role:user" for pair in some(2)],
        "one word and a time": [f"{word} since:2026-08" for word in some(1)],
        "two words, a workspace and a tool": [f"{pair} workspace:ferry tool:Bash" for pair in some(2)],
    }
    every: list[float] = []
    with stage.history() as history:
        history.search_sessions(COMMON)
        for name, queries in kinds.items():
            times = _measured(history, queries)
            every += times
            yield Figure(
                key=f"search {name}", what=f"search, {name}, p95", value=share(times, 0.95), unit="ms"
            )
        # Other words between: what the last few searches counted is kept at hand.
        common = _measured(history, [COMMON, *(word for word in some(1) if word != COMMON)])
    yield Figure(
        key="search", what="search, all of these, p95", value=share(every, 0.95), unit="ms", wanted=15
    )
    yield Figure(
        key="common",
        what=f"search for a common word ({COMMON})",
        value=common[0],
        unit="ms",
        wanted=15,
        times=50,
    )


def _measured(history: History, queries: list[str]) -> list[float]:
    """Each query as fast as when least disturbed, in milliseconds."""
    fastest = dict.fromkeys(queries, float("inf"))
    for _ in range(_RUNS):
        for query in queries:
            start = time.perf_counter()
            history.search_sessions(query, limit=20)
            fastest[query] = min(fastest[query], (time.perf_counter() - start) * 1000)
    return list(fastest.values())


def _words(rng: random.Random, root: Path) -> list[str]:
    """Words as often as they are met."""
    files = sorted(root.glob("projects/*/*.jsonl"))
    found: list[str] = []
    for path in rng.sample(files, min(_FILES, len(files))):
        with path.open("rb") as file:
            text = file.read(_SAMPLE).decode("utf-8", "replace")
        found += re.findall(r"(?<=[ .])[a-z]{3,}(?=[ .,:])", text)
    return found
