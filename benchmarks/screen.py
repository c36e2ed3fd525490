"""What a person waits for in the terminal UI."""

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

from backscroll.history import History
from backscroll.tui.app import Backscroll
from backscroll.tui.session_list.panel import PAUSE
from benchmarks.figures import Figure, lasted
from benchmarks.measure import Took, fastest, share
from benchmarks.stage import BACKSCROLL, Stage

__all__ = ["figures"]

_RUNS = 7
_SIZE = (45, 160)  # rows and columns
_SEEN = b" messages"  # stands in the first entry of the list
_TYPED = ("return", "parser", "timeout error", "why is the test")


def figures(stage: Stage) -> Iterator[Figure]:
    """Opening is measured from the start of the process, everything else on a screen that nobody sees."""
    stage.ready()
    places = ["--home", str(stage.home), "--root", f"claude-code={stage.root}"]
    took = fastest(_opened([*BACKSCROLL, *places, "tui"]) for _ in range(_RUNS))
    opened = "backscroll tui, until the list is there"
    yield lasted("tui-opens", opened, took.wall, processor=took.processor, wanted=500)
    searched, read = asyncio.run(_sat(lambda: History(home=stage.home)))
    yield lasted("tui-search", "a letter typed into its search, nine in ten", share(searched, 0.9), wanted=50)
    yield lasted("tui-read", "its longest session, until a screen is full", read, wanted=200)


def _opened(command: list[str]) -> Took:
    """Until the list is on the screen; the processor's time is that of the process until then."""
    began = time.perf_counter()
    process, screen = pty.fork()
    if process == 0:
        os.execvp(command[0], command)
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", *_SIZE, 0, 0))
    seen = b""
    while _SEEN not in seen:
        seen += os.read(screen, 65536)
    wall = time.perf_counter() - began
    ticks = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    processor = sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
    os.write(screen, b"q")
    _drain(screen)
    os.waitpid(process, 0)
    return Took(wall, processor)


def _drain(screen: int) -> None:
    """Read what comes until the other side is closed."""
    try:
        while select.select([screen], [], [], 10)[0] and os.read(screen, 65536):
            pass
    except OSError:
        return


async def _sat(open_history: Callable[[], History]) -> tuple[list[float], float]:
    """How long each letter took to show what it finds, and the longest session to show its beginning."""
    app = Backscroll(open_history, welcome=lambda _: (), syncs=False)
    rows, columns = _SIZE
    async with app.run_test(size=(columns, rows)) as pilot:
        await _until(lambda: app.is_listed)
        await pilot.pause(0.5)
        await pilot.press("slash")
        await pilot.pause(0.5)
        searched = [took for words in _TYPED for took in await _searched(app, words)]
        longest = max(app.shelf.every, key=lambda one: one.message_count)
        await pilot.pause(0.5)
        app.read_summary = None  # it may be the one that is shown
        began = time.perf_counter()
        app.read(longest.ref)
        await _until(lambda: app.read_summary is not None and app.read_summary.ref == longest.ref)
        return searched, time.perf_counter() - began


async def _searched(app: Backscroll, words: str) -> list[float]:
    """From each letter but the first of these words until what it finds is shown, the pause not counted."""
    app.line.value = words[:1]
    await asyncio.sleep(1)
    times: list[float] = []
    for letter in words[1:]:
        before = app.found
        began = time.perf_counter()
        app.line.insert_text_at_cursor(letter)
        await _until(lambda before=before: app.found is not before)
        times.append(time.perf_counter() - began - PAUSE)
        await asyncio.sleep(0.1)  # as long as nobody types faster
    return times


async def _until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.001)
