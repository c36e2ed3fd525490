"""A sync in a process group of its own, with many processes, that can be killed at any moment."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

__all__ = ["DRIVER", "Running", "moments"]

# The real command; but little is enough to be read side by side, a statement may be the last one, and
# taking in what was read may be slow.
DRIVER = """
import os, signal, sqlite3, sys
from backscroll.ingest import parallel
parallel._WORTH_IT, parallel._BATCH = 0, 150_000
if "SLOW" in os.environ:
    import time
    from backscroll.archive.write.unit_store import UnitStore
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


class Running:
    """A command under way, with every process that it started."""

    def __init__(self, *arguments: str | Path, **environ: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environ},
            start_new_session=True,
        )

    def wait_for(self, folder: Path, pattern: str) -> None:
        """Wait until such a file is there."""
        deadline = time.monotonic() + 30
        while not list(folder.glob(pattern)):
            assert time.monotonic() < deadline, self.end()
            time.sleep(0.01)

    def signal(self, number: signal.Signals) -> None:
        """To every process of the group, as a terminal or a failing machine would."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def end(self) -> tuple[int, str, str]:
        """How it ended and what it said."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


def moments(*arguments: str | Path, count: int, seed: int) -> Iterator[tuple[float, int]]:
    """Moments to be killed at: seconds since the start, or else the number of a statement.

    The first half is spread over the time that an undisturbed run takes, from its first moment to its
    last; the other half over what it does, however fast the machine is.
    """
    rng = random.Random(seed)
    begun = time.monotonic()
    _, out, _ = Running(*arguments, COUNT_STATEMENTS="1").end()
    seconds = time.monotonic() - begun
    statements = int(out.rpartition("statements ")[2])
    for number in range(count):
        share = (number + rng.random()) / count
        yield (seconds * share, 0) if number % 2 else (0.0, 1 + int(statements * share))
