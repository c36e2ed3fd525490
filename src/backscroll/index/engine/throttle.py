"""What the engine was given and has not looked at yet, kept small.

Its queue takes ten thousand messages, however long they are, and is filled faster
than the engine empties it: by ordinary messages with 45 MB, by long ones with as much
as there is. It cannot be asked how full it is. But the engine's thread sleeps when
nothing waits, and Linux tells who sleeps; elsewhere the queue's own limit is all there is.
"""

import os
import time
from contextlib import ExitStack, suppress
from pathlib import Path

__all__ = ["Throttle", "wait_until_idle"]

_MOST = 3_000_000  # characters that may wait; in the queue they take two to four times as many bytes
_THREADS = Path("/proc/self/task")
_WRITING = "thrd-tantivy-in"  # of "thrd-tantivy-index0"; the system keeps no more of it
_LOOK, _LOOK_AGAIN = 0.003, 0.0005  # seconds; one who waits for a lock sleeps too, but not for long
_PATIENCE = 5.0  # seconds; somebody else's engine in this process may never rest
_BEGINNING = 64  # bytes of what is told of a thread: its number, its name, and a letter for what it does


class Throttle:
    """Keeps whoever writes from running far ahead of the engine."""

    def __init__(self) -> None:
        self._size = 0

    def add(self, size: int) -> None:
        """Count so many characters that are about to be given, after waiting when enough were."""
        if self._size > _MOST:
            wait_until_idle()
            self._size = 0
        self._size += size


def wait_until_idle() -> None:
    """Wait until the engine has looked at all it was given, where that can be known."""
    deadline = time.monotonic() + _PATIENCE
    with ExitStack() as held:
        threads = _engine_threads(held)
        while threads and time.monotonic() < deadline:
            if _all_sleep(threads):
                time.sleep(_LOOK_AGAIN)
                if _all_sleep(threads):
                    return
            time.sleep(_LOOK)


def _engine_threads(held: ExitStack) -> list[int]:
    """Descriptors of what the system tells of those that write."""
    found: list[int] = []
    with suppress(OSError):  # of another system
        for thread in _THREADS.iterdir():
            with suppress(OSError):  # of a thread that has ended meanwhile
                if (thread / "comm").read_text().startswith(_WRITING):
                    found.append(os.open(thread / "stat", os.O_RDONLY))
                    held.callback(os.close, found[-1])
    return found


def _all_sleep(threads: list[int]) -> bool:
    return all(_state(thread) in (b"S", b"") for thread in threads)


def _state(thread: int) -> bytes:
    """A letter for what a thread does; none when it has ended."""
    try:
        return os.pread(thread, _BEGINNING, 0).rpartition(b") ")[2][:1]
    except OSError:
        return b""
