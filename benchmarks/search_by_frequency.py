"""Search times by word frequency: ``python -m benchmarks.search_by_frequency [S|L]``.

This uses the archive of the last run. Words are rare, medium or common by the share of messages that contain
them. Each query runs several times; the table shows percentiles of the fastest wall-clock and CPU times.
"""

import random
import re
import sys
import time
from collections import Counter
from typing import Any

from backscroll.history.history import History
from backscroll.model.search import searchable_text
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.measurement import percentile

_RUNS = 3
_QUERY_COUNT = 40
_SAMPLE_SESSIONS = 150
_MAX_CHARS_PER_MESSAGE = 20_000
_TARGET_MS = 15
_FREQUENCY_RANGES = {"rare": (0.0, 0.002), "medium": (0.002, 0.05), "common": (0.05, 1.0)}
_WORD = re.compile(r"[a-z]{3,}")


def words_by_frequency(history: History, rng: random.Random) -> dict[str, list[str]]:
    """Return the words of some sessions, grouped by the share of messages that contain them."""
    sessions = history.list_sessions(limit=1000).data
    counts: Counter[str] = Counter()
    message_count = 0
    for summary in rng.sample(sessions, min(_SAMPLE_SESSIONS, len(sessions))):
        for message in history.get_session(summary.ref).messages:
            message_count += 1
            text = searchable_text(message)[:_MAX_CHARS_PER_MESSAGE].lower()
            counts.update(set(_WORD.findall(text)))
    return {
        name: sorted(word for word, count in counts.items() if low <= count / message_count < high)
        for name, (low, high) in _FREQUENCY_RANGES.items()
    }


def time_queries(history: History, label: str, queries: list[str], **options: Any) -> list[float]:
    """Print percentiles of these queries and return their wall-clock times in milliseconds."""
    wall = dict.fromkeys(queries, float("inf"))
    cpu = dict.fromkeys(queries, float("inf"))
    for _ in range(_RUNS):
        for query in queries:
            start, cpu_start = time.perf_counter(), time.process_time()
            history.search_sessions(query, **options)
            cpu[query] = min(cpu[query], (time.process_time() - cpu_start) * 1000)
            wall[query] = min(wall[query], (time.perf_counter() - start) * 1000)
    times = list(wall.values())
    p50, p95 = percentile(times, 0.5), percentile(times, 0.95)
    cpu_p95 = percentile(list(cpu.values()), 0.95)
    _print_row(f"{label}: p50, p95, CPU p95", f"{p50:.1f}, {p95:.1f}, {cpu_p95:.1f} ms")
    return times


def _print_row(label: str, value: str) -> None:
    print(f"{label:<58} {value:>14}   target {_TARGET_MS} ms")


def main(scale: str) -> None:
    context = BenchmarkContext(scale, keep=True)
    rng = random.Random(3)
    with context.open_history() as history:
        words = words_by_frequency(history, rng)
        workspaces = [
            summary.workspace_name
            for summary in history.list_sessions(limit=200).data
            if summary.workspace_name
        ]
        history.search_sessions("return")
        times: list[float] = []

        def queries_of(frequency: str, word_count: int) -> list[str]:
            return [" ".join(rng.sample(words[frequency], word_count)) for _ in range(_QUERY_COUNT)]

        for frequency in words:
            for word_count in (1, 2, 3):
                queries = queries_of(frequency, word_count)
                times += time_queries(history, f"{word_count} {frequency}", queries)
        mixed = [f"{a} {b}" for a, b in zip(queries_of("rare", 1), queries_of("common", 1), strict=True)]
        times += time_queries(history, "rare and common", mixed)
        common = queries_of("common", 2)
        times += time_queries(history, "2 common and a role", [f"{pair} role:user" for pair in common])
        times += time_queries(history, "2 common and a time", [f"{pair} since:90d" for pair in common])
        filters = {"source": "claude-code"}
        times += time_queries(history, "2 common and a source", common, filters=filters)
        in_workspace = [f"{pair} workspace:{rng.choice(workspaces)}" for pair in common]
        times += time_queries(history, "2 common and a workspace", in_workspace)
        times += time_queries(history, "2 medium, by message", queries_of("medium", 2), by="message")
        times += time_queries(history, "2 common, by message", common, by="message")
        times += time_queries(history, "1 common, page 50", queries_of("common", 1), offset=980)
        _print_row(
            f"all {len(times)} queries: p50, p95",
            f"{percentile(times, 0.5):.1f}, {percentile(times, 0.95):.1f} ms",
        )
        questions = [f"why did the {three} in the end?" for three in queries_of("medium", 3)]
        time_queries(history, "question with 3 medium words", questions)
        time_queries(history, "prefix of 4 letters", [f"{word[:4]}*" for word in queries_of("medium", 1)])
        time_queries(history, "phrase of 2 common words", [f'"{pair}"' for pair in common])
        time_queries(history, "2 common, source files deleted", common, filters={"is": "gone"})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "S")
