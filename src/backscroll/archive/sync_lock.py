"""Whose turn it is: one process at a time brings an archive up to date."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

__all__ = ["turn"]

_STEP = 0.05  # seconds between two attempts, so that Ctrl-C is heard while waiting


@contextmanager
def turn(archive: Path, seconds: float | None) -> Iterator[bool]:
    """Hold the turn; False inside when another process has it for longer than so many seconds.

    Reading what changed is many transactions with long pauses, in which the archive itself looks idle.
    The turn is a lock on a file beside it, which ends with the process that holds it, however that ends.
    """
    deadline = time.monotonic() + seconds if seconds is not None else None
    path = archive.with_name("sync.lock")
    if not path.exists():
        path.touch(mode=0o600)
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as lock:
        while not (is_held := _taken(lock)):
            if deadline is not None and time.monotonic() + _STEP > deadline:
                break
            time.sleep(_STEP)
        yield is_held


def _taken(lock: sqlite3.Connection) -> bool:
    try:
        lock.execute("pragma journal_mode = memory")  # nothing is written, also when the disk is full
        lock.execute("begin exclusive")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
