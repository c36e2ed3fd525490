"""Private temporary folders that are deleted even if their process is killed."""

import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType

__all__ = ["TempFolder"]

_PREFIX = "backscroll-scratch-"
_LOCK_FILE = "held"  # a database that is locked while the folder is in use


class TempFolder:
    """A temporary folder for this user only.

    A killed process leaves its folder behind, with private data in it. Its lock is released by the system,
    so the next process that creates such a folder detects and deletes it.
    """

    def __init__(self) -> None:
        _delete_abandoned()
        self.path, self._lock = _create()

    def close(self) -> None:
        """Delete the folder and its content."""
        self._lock.close()
        # On some systems an open file cannot be deleted. The next process deletes it.
        shutil.rmtree(self.path, ignore_errors=True)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _create() -> tuple[Path, sqlite3.Connection]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            (path / _LOCK_FILE).touch(mode=0o600)
            lock = _lock(path)
        except OSError:
            if path.exists():
                raise
            continue
        if lock is not None and path.exists():
            return path, lock
        # Another process deleted it as abandoned before it was locked.


def _lock(folder: Path) -> sqlite3.Connection | None:
    """Lock the folder; None if another process has it locked."""
    db = sqlite3.connect(folder / _LOCK_FILE, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        db.execute("pragma journal_mode = memory")  # nothing is written, so a full disk is no error
        db.execute("begin exclusive")
    except sqlite3.OperationalError as error:
        db.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise OSError(f"{folder} cannot be written: {error}") from error
        return None
    return db


def _delete_abandoned() -> None:
    """Delete the folders of killed processes."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # The folder of another user cannot be opened.
        with suppress(OSError, sqlite3.DatabaseError):
            # Without a lock file it is just being created.
            if (folder / _LOCK_FILE).exists() and (lock := _lock(folder)) is not None:
                with closing(lock):
                    shutil.rmtree(folder, ignore_errors=True)
