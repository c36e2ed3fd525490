"""Time until the first command on a new archive answers, while the first sync continues."""

import os
import pty
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.benchmark_context import BACKSCROLL_COMMAND, BenchmarkContext
from benchmarks.generated_histories import CACHE_FOLDER
from benchmarks.result_table import Result, duration_result
from benchmarks.word_search import COMMON_WORD

_RUNS = 3
_COMMANDS = (  # key, arguments, target in milliseconds
    ("first-list", ("list",), 1500),
    ("first-search", ("search", COMMON_WORD), 3000),
)


def measure(context: BenchmarkContext) -> Iterator[Result]:
    home = CACHE_FOLDER / f"home-first-{context.scale}"
    options = ["--home", str(home), "--root", f"claude-code={context.root}"]
    for key, arguments, target in _COMMANDS:
        seconds = min(_time_first([*BACKSCROLL_COMMAND, *options], arguments, home) for _ in range(_RUNS))
        label = f"First answer on a new archive: backscroll {' '.join(arguments)}"
        yield duration_result(key, label, seconds, target=target)
    shutil.rmtree(home, ignore_errors=True)


def _time_first(command: list[str], arguments: tuple[str, ...], home: Path) -> float:
    """Return the seconds until a command has printed its answer on a terminal."""
    shutil.rmtree(home, ignore_errors=True)
    start = time.perf_counter()
    _run_in_terminal([*command, *arguments])
    seconds = time.perf_counter() - start
    subprocess.run([*command, "sync", "--stop"], check=True, capture_output=True)
    return seconds


def _run_in_terminal(command: list[str]) -> None:
    controller, terminal = pty.openpty()
    environ = {**os.environ, "PAGER": "cat", "TERM": "xterm"}
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environ)
    os.close(terminal)
    try:
        while os.read(controller, 65536):
            pass
    except OSError:
        pass  # Linux: the other end is closed
    os.close(controller)
    if process.wait() != 0:
        raise RuntimeError(f"{command[-1]} failed with exit code {process.returncode}")
