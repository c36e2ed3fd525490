"""The archive's file, and whose turn it is to write it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from backscroll.archive.connection import BUSY_SECONDS, connect
from backscroll.archive.errors import is_busy
from backscroll.archive.sync_lock import turn
from backscroll.archive.write.exclusions import Barrier

if TYPE_CHECKING:
    pass

__all__ = ["Opened"]


class Opened:
    """The archive's file, and whose turn it is to write it."""

    def __init__(self, path: Path, *, barrier: Barrier | None = None, is_shard: bool = False) -> None:
        self.path = path
        self._is_shard = is_shard
        self._db = connect(path, is_shard=is_shard)
        self._barrier = barrier or Barrier()

    def close(self) -> None:
        if self._db.in_transaction:  # a shard's only one
            self._db.execute("commit")
        self._db.close()

    def interrupt(self) -> None:
        """From any thread: end what is being asked of the file with an error of SQLite's."""
        with suppress(sqlite3.ProgrammingError):  # it was closed meanwhile
            self._db.interrupt()

    @contextmanager
    def patience(self, seconds: float | None) -> Iterator["Self | None"]:
        """Have the turn to bring it up to date, waiting for so long; None when another process has it."""
        with turn(self.path, seconds) as is_held:
            if seconds is None:
                yield self
                return
            # Whoever does not wait for a turn does not wait for a single transaction either.
            self._db.execute(f"pragma busy_timeout = {int(seconds * 1000)}")
            try:
                yield self if is_held and self._is_idle() else None
            finally:
                self._db.execute(f"pragma busy_timeout = {int(BUSY_SECONDS * 1000)}")

    def _is_idle(self) -> bool:
        try:
            self._db.execute("begin immediate")
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            return False
        self._db.execute("rollback")
        return True

    @property
    def barrier(self) -> Barrier:
        """What is not to be written: what was forgotten, here or where this is a shard of, or is excluded."""
        if self._is_shard:  # nothing is ever forgotten in one
            return self._barrier
        from backscroll.archive.maintenance import forget

        forgotten = forget.forgotten(self._db)
        return Barrier(self._barrier.forgotten | forgotten, self._barrier.patterns)
