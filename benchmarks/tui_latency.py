"""Response times of the terminal UI."""

import asyncio
import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from backscroll.history.history import History
from backscroll.tui.app import Backscroll
from backscroll.tui.session_list_panel import SEARCH_DELAY_SECONDS
from benchmarks.benchmark_context import BACKSCROLL_COMMAND, BenchmarkContext
from benchmarks.measurement import Duration, fastest, percentile
from benchmarks.result_table import Result, duration_result

_RUNS = 7
_ROWS, _COLUMNS = 45, 160
_LIST_MARKER = b" messages"  # part of the first entry of the session list
_QUERIES = ("return", "parser", "timeout error", "why is the test")


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Measure the start as a process on a pseudo-terminal, everything else on a headless screen."""
    context.ensure_archive()
    options = ["--home", str(context.home), "--root", f"claude-code={context.root}"]
    duration = fastest(_time_start([*BACKSCROLL_COMMAND, *options, "tui"]) for _ in range(_RUNS))
    yield duration_result(
        "tui-start",
        "backscroll tui, start to visible list",
        duration.wall_seconds,
        cpu_seconds=duration.cpu_seconds,
        target=500,
    )
    keystrokes, first_screen = asyncio.run(_time_headless(lambda: History(home=context.home)))
    yield duration_result(
        "tui-search", "TUI search per keystroke, p90", percentile(keystrokes, 0.9), target=50
    )
    yield duration_result("tui-read", "TUI, first screen of the longest session", first_screen, target=200)


def _time_start(command: list[str]) -> Duration:
    """Return the wall and CPU time of the process until the list is visible."""
    start = time.perf_counter()
    process, terminal = pty.fork()
    if process == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    output = b""
    while _LIST_MARKER not in output:
        output += os.read(terminal, 65536)
    wall_seconds = time.perf_counter() - start
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    cpu_seconds = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    os.write(terminal, b"q")
    _drain(terminal)
    os.waitpid(process, 0)
    return Duration(wall_seconds, cpu_seconds)


def _drain(terminal: int) -> None:
    """Read and discard output until the process closes the terminal."""
    try:
        while select.select([terminal], [], [], 10)[0] and os.read(terminal, 65536):
            pass
    except OSError:
        return


async def _time_headless(open_history: Callable[[], History]) -> tuple[list[float], float]:
    """Return the seconds per keystroke of a search, and to the first screen of the longest session."""
    app = Backscroll(open_history, welcome=lambda _: (), auto_sync=False)
    async with app.run_test(size=(_COLUMNS, _ROWS)) as pilot:
        await _wait_until(lambda: app.is_list_complete)
        await pilot.pause(0.5)
        await pilot.press("slash")
        await pilot.pause(0.5)
        keystrokes = [seconds for query in _QUERIES for seconds in await _time_keystrokes(app, query)]
        longest = max(app.list_model.summaries, key=lambda summary: summary.message_count)
        await pilot.pause(0.5)
        app.shown_session = None  # the longest session may already be shown
        start = time.perf_counter()
        app.show_transcript(longest.ref)
        await _wait_until(lambda: app.shown_session is not None and app.shown_session.ref == longest.ref)
        return keystrokes, time.perf_counter() - start


async def _time_keystrokes(app: Backscroll, query: str) -> list[float]:
    """Return the seconds from each keystroke after the first to its results, without the debounce delay."""
    app.input_line.value = query[:1]
    await asyncio.sleep(1)
    times: list[float] = []
    for letter in query[1:]:
        previous = app.search_result
        start = time.perf_counter()
        app.input_line.insert_text_at_cursor(letter)
        await _wait_until(lambda previous=previous: app.search_result is not previous)
        times.append(time.perf_counter() - start - SEARCH_DELAY_SECONDS)
        await asyncio.sleep(0.1)  # pause between keystrokes of a fast typist
    return times


async def _wait_until(is_true: Callable[[], bool]) -> None:
    while not is_true():
        await asyncio.sleep(0.001)
