"""From the moment a message is written until another process finds it: ``python -m benchmarks.watch``."""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.testing import claude_code
from backscroll.testing.claude_code import Transcript
from benchmarks.figures import Figure
from benchmarks.measure import share
from benchmarks.stage import Stage

__all__ = ["figures", "measure"]

_CODE = "from backscroll.cli import main; main()"
_TIMES = 300
_FEW = 60
_LONGEST = 20.0
_PARTS = {"fastest": 0.0, "half": 0.5, "p95": 0.95, "p99": 0.99, "slowest": 0.9999}


def figures(stage: Stage) -> Iterator[Figure]:
    times = measure(times=_FEW)
    yield Figure(
        key="watch",
        what="written to found by another process while watching, p95",
        value=share(times, 0.95) * 1000,
        unit="ms",
        wanted=300,
    )


def measure(sessions: int = 1000, *, times: int = _TIMES) -> list[float]:
    """Seconds until a message can be found, for several messages, in a history of so many sessions."""
    folder = Path(tempfile.mkdtemp(prefix="backscroll-watch-"))
    try:
        root = folder / "claude"
        claude_code.history(root, sessions=sessions, seed=1)
        session = Transcript("10000000-0000-4000-8000-000000000000", seed=1).user("First words")
        path = session.write(root)
        roots = [NamedRoot("claude-code", root)]
        with History(roots=roots, home=folder / "home") as history:
            history.sync()
            options = ["--home", str(folder / "home"), "--root", f"claude-code={root}"]
            watch = subprocess.Popen(
                [sys.executable, "-c", _CODE, *options, "watch"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            try:
                assert watch.stderr is not None
                watch.stderr.readline()
                time.sleep(2)
                return [_until_found(history, session, path, f"zeppelin{place}") for place in range(times)]
            finally:
                watch.kill()
                watch.communicate()
    finally:
        shutil.rmtree(folder)


def _until_found(history: History, session: Transcript, path: Path, word: str) -> float:
    size = path.stat().st_size
    lines = session.user(word).lines()[size:]
    start = time.perf_counter()
    with path.open("ab") as file:
        file.write(lines)
    while not history.search_sessions(word).data:
        if time.perf_counter() - start > _LONGEST:
            raise RuntimeError(f"{word} was not found in {_LONGEST:.0f} s")
        time.sleep(0.005)
    found = time.perf_counter() - start
    # At no moment that the watcher could be in step with.
    time.sleep(random.uniform(0.05, 0.4))
    return found


def main() -> None:
    times = sorted(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
    told = [f"{name} {times[int(len(times) * part)] * 1000:.0f} ms" for name, part in _PARTS.items()]
    print(f"written to found while watching, {len(times)} times: {', '.join(told)} (wanted 300 ms)")


if __name__ == "__main__":
    main()
