"""Inter-process sync lock. The operating system releases it when the process exits.

The caller chooses how long to wait for another process. `history.sync` waits until the other sync ends, or
not at all. `ingest.watch` waits for its LOCK_TIMEOUT_SECONDS.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from backscroll.archive.errors import read_only_error
from backscroll.readers.file_lock import try_lock_connection

__all__ = ["is_locked", "sync_lock"]

POLL_SECONDS = 0.05  # short enough for Ctrl-C to work while waiting
PROBE_SECONDS = 0.005  # `is_locked` of another process holds the lock for less than this


@contextmanager
def sync_lock(
    archive: Path, timeout: float | None, while_waiting: Callable[[], None] | None = None
) -> Iterator[bool]:
    """Hold the sync lock of an archive. Yield False if it is still taken after `timeout` seconds.

    A sync consists of many transactions with long pauses, so the archive's own locks are not enough.
    The lock is an exclusive SQLite transaction on a file in the same folder.
    """
    deadline = time.monotonic() + timeout if timeout is not None else None
    path = archive.with_name("sync.lock")
    if not path.exists():
        try:
            path.touch(mode=0o600)
        except PermissionError as error:
            raise read_only_error(archive) from error
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as lock:
        while not (is_held := try_lock_connection(lock) or _try_again(lock)):
            if deadline is not None and time.monotonic() + POLL_SECONDS > deadline:
                break
            if while_waiting is not None:
                while_waiting()
            time.sleep(POLL_SECONDS)
        yield is_held


def is_locked(archive: Path) -> bool:
    """Return whether a process syncs the archive now."""
    with sync_lock(archive, 0.0) as is_held:
        return not is_held


def _try_again(lock: sqlite3.Connection) -> bool:
    """Try once more, because another process may only have looked."""
    time.sleep(PROBE_SECONDS)
    return try_lock_connection(lock)
