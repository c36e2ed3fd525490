"""In-process search for words: pages of 20 sessions with snippets and a total count."""

import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

from backscroll.history.history import History
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.measurement import percentile
from benchmarks.result_table import Result

COMMON_WORD = "return"
_QUERY_COUNT = 60
_RUNS = 3
_SAMPLE_FILES = 60
_SAMPLE_BYTES_PER_FILE = 200_000


def measure(context: BenchmarkContext) -> Iterator[Result]:
    rng = random.Random(2)
    vocabulary = sample_words(rng, context.root)

    def queries_of(word_count: int) -> list[str]:
        return [" ".join(rng.sample(vocabulary, word_count)) for _ in range(_QUERY_COUNT)]

    query_sets = {
        "one word": queries_of(1),
        "two words": queries_of(2),
        "three words": queries_of(3),
        "two words and a role": [f"{words} role:user" for words in queries_of(2)],
        "one word and a time": [f"{word} since:2026-08" for word in queries_of(1)],
        "two words, a workspace and a tool": [
            f"{words} workspace:ferry tool:Bash" for words in queries_of(2)
        ],
    }
    all_times: list[float] = []
    with context.open_history() as history:
        history.search_sessions(COMMON_WORD)
        for name, queries in query_sets.items():
            times = _time_queries(history, queries)
            all_times += times
            yield Result(
                key=f"search {name}", label=f"Search, {name}, p95", value=percentile(times, 0.95), unit="ms"
            )
        # The other words displace the common word from the cache of recent searches.
        common = _time_queries(
            history, [COMMON_WORD, *(word for word in queries_of(1) if word != COMMON_WORD)]
        )
    yield Result(
        key="search",
        label="Search, all queries above, p95",
        value=percentile(all_times, 0.95),
        unit="ms",
        target=15,
    )
    yield Result(
        key="common word",
        label=f"Search, common word ({COMMON_WORD})",
        value=common[0],
        unit="ms",
        target=15,
        target_ratio=50,
    )


def _time_queries(history: History, queries: list[str]) -> list[float]:
    """Return the fastest time of each query in milliseconds."""
    fastest = dict.fromkeys(queries, float("inf"))
    for _ in range(_RUNS):
        for query in queries:
            start = time.perf_counter()
            history.search_sessions(query, limit=20)
            fastest[query] = min(fastest[query], (time.perf_counter() - start) * 1000)
    return list(fastest.values())


def sample_words(rng: random.Random, root: Path) -> list[str]:
    """Return words of some files with their repetitions, so that common words are drawn more often."""
    files = sorted(root.glob("projects/*/*.jsonl"))
    words: list[str] = []
    for path in rng.sample(files, min(_SAMPLE_FILES, len(files))):
        with path.open("rb") as file:
            text = file.read(_SAMPLE_BYTES_PER_FILE).decode("utf-8", "replace")
        words += re.findall(r"(?<=[ .])[a-z]{3,}(?=[ .,:])", text)
    return words
