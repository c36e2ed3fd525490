"""What the engine was given and has not looked at yet, kept small.

Its queue takes ten thousand messages, however long they are, and is filled faster
than the engine empties it: by ordinary messages with 45 MB, by long ones with as much
as there is. It cannot be asked how full it is. But the engine's thread sleeps when
nothing waits, and Linux tells who sleeps; elsewhere the queue's own limit is all there is.
"""

import time
from pathlib import Path

__all__ = ["Backlog", "wait_until_idle"]

_MOST = 2_000_000  # characters that may wait; in the queue they take two to four times as many bytes
_THREADS = Path("/proc/self/task")
_NAME = b"thrd-tantivy-in"  # of "thrd-tantivy-index0"; the system keeps no more of it
_LOOK, _LOOK_AGAIN = 0.002, 0.0005  # seconds; one who waits for a lock sleeps too, but not for long
_PATIENCE = 5.0  # seconds; somebody else's engine in this process may never rest


class Backlog:
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
    threads = _engine_threads()
    deadline = time.monotonic() + _PATIENCE
    while threads and time.monotonic() < deadline:
        if _all_sleep(threads):
            time.sleep(_LOOK_AGAIN)
            if _all_sleep(threads):
                return
        time.sleep(_LOOK)


def _engine_threads() -> list[Path]:
    try:
        return [thread for thread in _THREADS.iterdir() if _read(thread / "comm").startswith(_NAME)]
    except OSError:  # another system
        return []


def _all_sleep(threads: list[Path]) -> bool:
    # Behind the name, which is in brackets and may hold any character: one letter for what a thread does.
    states = [_read(thread / "stat").rpartition(b")")[2].lstrip()[:1] for thread in threads]
    return all(state in (b"S", b"") for state in states)


def _read(path: Path) -> bytes:
    """A file of the system about a thread, empty when the thread is gone."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
