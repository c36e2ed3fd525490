"""A sync in its own process group, with many processes, that can be killed at any point."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.forked_process import ForkedProcess

# Runs the real command with small batches. Environment variables kill it at an SQL statement, count the
# statements, or delay merging.
DRIVER = """
import os, signal, sqlite3, sys
from backscroll.ingest import parallel
parallel.MIN_PARALLEL_BYTES, parallel.BATCH_BYTES = 0, 150_000
if "SLOW" in os.environ:
    import time
    from backscroll.archive.write.units import UnitStore
    merge = UnitStore.merge_shards
    UnitStore.merge_shards = lambda *arguments: time.sleep(float(os.environ["SLOW"])) or merge(*arguments)
last = int(os.environ.get("LAST_STATEMENT", "0"))
if last or "COUNT_STATEMENTS" in os.environ:
    made = sqlite3.connect
    done = 0
    def count(_):
        global done
        done += 1
        if done == last:
            os.killpg(0, signal.SIGKILL)
    def connect(*arguments, **named):
        db = made(*arguments, **named)
        db.set_trace_callback(count)
        return db
    sqlite3.connect = connect
sys.argv[0] = "backscroll"
from backscroll.cli import main
try:
    main()
finally:
    if "COUNT_STATEMENTS" in os.environ:
        print("statements", done)
"""


class ChildProcess:
    """A running command with every process that it started."""

    def __init__(self, *arguments: str | Path, **environ: str) -> None:
        self.process = ForkedProcess(
            [sys.executable, "-c", DRIVER, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environ},
            start_new_session=True,
        )

    def wait_for(self, folder: Path, pattern: str) -> None:
        """Wait until a file matches the pattern."""
        deadline = time.monotonic() + 30
        while not list(folder.glob(pattern)):
            assert time.monotonic() < deadline, self.end()
            time.sleep(0.01)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to every process of the group."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def end(self) -> tuple[int, str, str]:
        """Wait for the end and return exit code, output and errors."""
        out, err = self.process.communicate(timeout=60)
        return self.process.wait(), out, err


def kill_points(*arguments: str | Path, count: int, seed: int) -> Iterator[tuple[float, int]]:
    """Yield points at which to kill a run: seconds since the start, or the number of an SQL statement.

    Half of the points are spread over the duration of an undisturbed run, the others over its statements.
    """
    rng = random.Random(seed)
    begun = time.monotonic()
    _, out, _ = ChildProcess(*arguments, COUNT_STATEMENTS="1").end()
    seconds = time.monotonic() - begun
    statements = int(out.rpartition("statements ")[2])
    for number in range(count):
        share = (number + rng.random()) / count
        yield (seconds * share, 0) if number % 2 else (0.0, 1 + int(statements * share))
