"""Limit on the text that waits in Tantivy's queue.

The queue holds up to 10,000 messages of any length and fills faster than the indexing
thread empties it: 45 MB with ordinary messages, without limit with long ones. Its fill
level is not exposed. But the indexing thread sleeps when the queue is empty, and Linux
shows the state of each thread. On other systems only the queue's own limit applies.
"""

import os
import time
from contextlib import ExitStack, suppress
from pathlib import Path

__all__ = ["Throttle", "wait_until_idle"]

MAX_QUEUED_CHARS = 3_000_000  # in the queue each takes two to four bytes
_THREADS = Path("/proc/self/task")
_INDEXING_THREAD_PREFIX = "thrd-tantivy-in"  # of "thrd-tantivy-index0"; Linux keeps 15 characters
_POLL_SECONDS = 0.003
_RECHECK_SECONDS = 0.0005  # a thread that waits for a lock sleeps too, but not for long
_TIMEOUT_SECONDS = 5.0  # another index in this process may never be idle
_STAT_BYTES = 64  # enough of /proc/self/task/*/stat for id, name and state


class Throttle:
    """Keeps the caller from running far ahead of the indexing thread."""

    def __init__(self) -> None:
        self._queued_chars = 0

    def add(self, size: int) -> None:
        """Count characters that are about to be queued. Wait first if the limit is exceeded."""
        if self._queued_chars > MAX_QUEUED_CHARS:
            wait_until_idle()
            self._queued_chars = 0
        self._queued_chars += size


def wait_until_idle() -> None:
    """Wait until the indexing threads sleep. Return at once if the system does not show their state."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    with ExitStack() as open_files:
        threads = _indexing_threads(open_files)
        while threads and time.monotonic() < deadline:
            if _all_sleep(threads):
                time.sleep(_RECHECK_SECONDS)
                if _all_sleep(threads):
                    return
            time.sleep(_POLL_SECONDS)


def _indexing_threads(open_files: ExitStack) -> list[int]:
    """Open the ``stat`` files of the indexing threads and return their descriptors."""
    found: list[int] = []
    with suppress(OSError):  # not Linux
        for thread in _THREADS.iterdir():
            with suppress(OSError):  # the thread has ended
                if (thread / "comm").read_text().startswith(_INDEXING_THREAD_PREFIX):
                    found.append(os.open(thread / "stat", os.O_RDONLY))
                    open_files.callback(os.close, found[-1])
    return found


def _all_sleep(threads: list[int]) -> bool:
    return all(_state(thread) in (b"S", b"") for thread in threads)


def _state(thread: int) -> bytes:
    """Return the state letter of a thread; empty if it has ended."""
    try:
        return os.pread(thread, _STAT_BYTES, 0).rpartition(b") ")[2][:1]
    except OSError:
        return b""
