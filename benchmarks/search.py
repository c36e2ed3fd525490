"""Where the time of a search goes: ``python -m benchmarks.search [S|L]``, on the archive of the last run.

Words are rare, middling or common by how many messages have them. Each query is told as fast as when
least disturbed, by the clock and by the processor's time of all threads.
"""

import random
import re
import sys
import time
from collections import Counter
from typing import Any

from backscroll.history import History
from backscroll.model.searchable_text import searchable_text
from benchmarks.figures import say
from benchmarks.measure import share
from benchmarks.stage import Stage

_RUNS = 3
_QUERIES = 40
_SESSIONS = 150  # that words are taken from
_SHARES = {"rare": (0.0, 0.002), "middling": (0.002, 0.05), "common": (0.05, 1.0)}
_WORD = re.compile(r"[a-z]{3,}")


def words(history: History, rng: random.Random) -> dict[str, list[str]]:
    """Words of some sessions, by how common they are there."""
    sessions = history.list_sessions(limit=1000).data
    met: Counter[str] = Counter()
    messages = 0
    for summary in rng.sample(sessions, min(_SESSIONS, len(sessions))):
        for message in history.get_session(summary.ref).messages:
            messages += 1
            met.update(set(_WORD.findall(searchable_text(message)[:20_000].lower())))
    return {
        name: sorted(word for word, count in met.items() if least <= count / messages < most)
        for name, (least, most) in _SHARES.items()
    }


def measure(history: History, name: str, queries: list[str], **options: Any) -> list[float]:
    """The times of these queries by the clock in milliseconds; percentiles and the processor's are told."""
    wall = dict.fromkeys(queries, float("inf"))
    processor = dict.fromkeys(queries, float("inf"))
    for _ in range(_RUNS):
        for query in queries:
            start, busy = time.perf_counter(), time.process_time()
            history.search_sessions(query, **options)
            processor[query] = min(processor[query], (time.process_time() - busy) * 1000)
            wall[query] = min(wall[query], (time.perf_counter() - start) * 1000)
    times = list(wall.values())
    p50, p95 = share(times, 0.5), share(times, 0.95)
    busy95 = share(list(processor.values()), 0.95)
    say(f"{name}: p50, p95, p95 of the processor", f"{p50:.1f}, {p95:.1f}, {busy95:.1f} ms", "15 ms")
    return times


def main(scale: str) -> None:
    stage = Stage(scale, keep=True)
    rng = random.Random(3)
    with stage.history() as history:
        known = words(history, rng)
        places = [one.workspace_name for one in history.list_sessions(limit=200).data if one.workspace_name]
        history.search_sessions("return")
        every: list[float] = []

        def some(kind: str, number: int) -> list[str]:
            return [" ".join(rng.sample(known[kind], number)) for _ in range(_QUERIES)]

        for kind in known:
            for number in (1, 2, 3):
                every += measure(history, f"{number} {kind}", some(kind, number))
        mixed = [f"{a} {b}" for a, b in zip(some("rare", 1), some("common", 1), strict=True)]
        every += measure(history, "rare and common", mixed)
        common = some("common", 2)
        every += measure(history, "2 common and a role", [f"{pair} role:user" for pair in common])
        every += measure(history, "2 common and a time", [f"{pair} since:90d" for pair in common])
        filters = {"source": "claude-code"}
        every += measure(history, "2 common and a source", common, filters=filters)
        chosen = [f"{pair} workspace:{rng.choice(places)}" for pair in common]
        every += measure(history, "2 common and a workspace", chosen)
        every += measure(history, "2 middling, by message", some("middling", 2), by="message")
        every += measure(history, "2 common, by message", common, by="message")
        every += measure(history, "1 common, page 50", some("common", 1), offset=980)
        say(f"all {len(every)}: p50, p95", f"{share(every, 0.5):.1f}, {share(every, 0.95):.1f} ms", "15 ms")
        questions = [f"why did the {three} in the end?" for three in some("middling", 3)]
        measure(history, "a question with 3 middling words", questions)
        measure(history, "a prefix of four letters", [f"{word[:4]}*" for word in some("middling", 1)])
        measure(history, "a phrase of 2 common words", [f'"{pair}"' for pair in common])
        measure(history, "2 common, gone", common, filters={"is": "gone"})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "S")
