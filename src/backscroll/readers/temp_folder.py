"""Private temporary folders that are deleted even if their process is killed."""

import shutil
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType

from backscroll.readers.file_lock import try_lock

_PREFIX = "backscroll-scratch-"
_LOCK_FILE = "held"  # a database that is locked while the folder is in use


class TempFolder:
    """A temporary folder for this user only.

    A killed process leaves its folder behind, with private data in it. Its lock is released by the system,
    so the next process that creates such a folder detects and deletes it. ``parent`` is the folder to create
    it in, by default the system's folder for temporary files.
    """

    def __init__(self, parent: Path | None = None) -> None:
        parent = parent or Path(tempfile.gettempdir())
        _delete_abandoned(parent)
        self.path, self._lock = _create(parent)

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


def _create(parent: Path) -> tuple[Path, sqlite3.Connection]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        try:
            lock = try_lock(path / _LOCK_FILE)
        except OSError:
            if path.exists():
                raise
            continue
        if lock is not None and path.exists():
            return path, lock
        # Another process deleted it as abandoned before it was locked.


def _delete_abandoned(parent: Path) -> None:
    """Delete the folders of killed processes."""
    for folder in parent.glob(f"{_PREFIX}*"):
        # The folder of another user cannot be opened.
        with suppress(OSError, sqlite3.DatabaseError):
            # Without a lock file it is just being created.
            if (folder / _LOCK_FILE).exists() and (lock := try_lock(folder / _LOCK_FILE)) is not None:
                with closing(lock):
                    shutil.rmtree(folder, ignore_errors=True)
