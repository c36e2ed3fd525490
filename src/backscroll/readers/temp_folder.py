"""Private temporary folders that do not outlive their process, not even one that was killed."""

import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType

__all__ = ["TempFolder"]

_PREFIX = "backscroll-scratch-"
_HELD = "held"  # a database that is locked for as long as somebody uses the folder


class TempFolder:
    """A folder in the system's temporary one, for this user alone.

    A killed process leaves its folder behind, with a part of somebody's history in it. Its lock dies with
    it, so that the next process to make such a folder can tell, and removes it.
    """

    def __init__(self) -> None:
        _sweep()
        self.path, self._lock = _made()

    def close(self) -> None:
        """Remove the folder with all that is in it."""
        self._lock.close()
        # On some systems a file that another program looks at cannot be removed; the next process does it.
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


def _made() -> tuple[Path, sqlite3.Connection]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            (path / _HELD).touch(mode=0o600)
            lock = _locked(path)
        except OSError:
            if path.exists():
                raise
            continue
        if lock is not None and path.exists():
            return path, lock
        # Between two steps another process took it for one that was left behind.


def _locked(folder: Path) -> sqlite3.Connection | None:
    """The folder's lock, held until it is closed; None when somebody holds it already."""
    db = sqlite3.connect(folder / _HELD, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        db.execute("pragma journal_mode = memory")  # nothing is written, also when the disk is full
        db.execute("begin exclusive")
    except sqlite3.OperationalError as error:
        db.close()
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise OSError(f"{folder} cannot be written: {error}") from error
        return None
    return db


def _sweep() -> None:
    """Remove what killed processes left behind."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Another user's folder cannot be opened, and is not ours to remove.
        with suppress(OSError, sqlite3.DatabaseError):
            # Without its lock it is one that is just being made.
            if (folder / _HELD).exists() and (lock := _locked(folder)) is not None:
                with closing(lock):
                    shutil.rmtree(folder, ignore_errors=True)
