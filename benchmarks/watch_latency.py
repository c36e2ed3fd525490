"""Time from a written message until another process finds it, with ``backscroll watch`` running.

``python -m benchmarks.watch_latency [SESSIONS]`` prints the distribution.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.builders.claude_code.bulk.history import write_history as write_claude_history

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.measurement import percentile
from benchmarks.result_table import Result

_MAIN_CODE = "from backscroll.cli import main; main()"
_DISTRIBUTION_RUNS = 300
_BENCHMARK_RUNS = 60
_TIMEOUT_SECONDS = 20.0
_POLL_INTERVAL_SECONDS = 0.005
_TARGET_MS = 300
_FRACTIONS = {"fastest": 0.0, "p50": 0.5, "p95": 0.95, "p99": 0.99, "slowest": 0.9999}


def measure(context: BenchmarkContext) -> Iterator[Result]:
    latencies = measure_latencies(runs=_BENCHMARK_RUNS)
    yield Result(
        key="watch",
        label="Written message to searchable in another process, with watch, p95",
        value=percentile(latencies, 0.95) * 1000,
        unit="ms",
        target=_TARGET_MS,
    )


def measure_latencies(session_count: int = 1000, *, runs: int = _DISTRIBUTION_RUNS) -> list[float]:
    """Return the seconds until each of several messages is found in a history of this size."""
    folder = Path(tempfile.mkdtemp(prefix="backscroll-watch-"))
    try:
        root = folder / "claude"
        write_claude_history(root, sessions=session_count, seed=1)
        session = Transcript("10000000-0000-4000-8000-000000000000", seed=1).user("First words")
        path = session.write(root)
        roots = [NamedRoot("claude-code", root)]
        with History(roots=roots, home=folder / "home") as history:
            history.sync()
            options = ["--home", str(folder / "home"), "--root", f"claude-code={root}"]
            watch = subprocess.Popen(
                [sys.executable, "-c", _MAIN_CODE, *options, "watch"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            try:
                assert watch.stderr is not None
                watch.stderr.readline()
                time.sleep(2)
                return [_time_message(history, session, path, f"zeppelin{run}") for run in range(runs)]
            finally:
                watch.kill()
                watch.communicate()
    finally:
        shutil.rmtree(folder)


def _time_message(history: History, session: Transcript, path: Path, word: str) -> float:
    size = path.stat().st_size
    lines = session.user(word).lines()[size:]
    start = time.perf_counter()
    with path.open("ab") as file:
        file.write(lines)
    while not history.search_sessions(word).data:
        if time.perf_counter() - start > _TIMEOUT_SECONDS:
            raise RuntimeError(f"{word} was not found within {_TIMEOUT_SECONDS:.0f} s")
        time.sleep(_POLL_INTERVAL_SECONDS)
    latency = time.perf_counter() - start
    # A random pause keeps the writes from aligning with the interval of the watcher.
    time.sleep(random.uniform(0.05, 0.4))
    return latency


def main() -> None:
    latencies = sorted(measure_latencies(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
    distribution = [
        f"{name} {latencies[int(len(latencies) * fraction)] * 1000:.0f} ms"
        for name, fraction in _FRACTIONS.items()
    ]
    print(f"{len(latencies)} messages: {', '.join(distribution)} (target {_TARGET_MS} ms)")


if __name__ == "__main__":
    main()
