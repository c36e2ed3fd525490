"""Consistent copies of databases, without credentials.

Deleting a row leaves its bytes in unused parts of the file, and so did every deletion of the tool before.
``vacuum into`` writes a new file with the current rows only.
`SnapshotQueue` takes snapshots in another thread while the caller compresses other files.
"""

import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

from backscroll.backup.sources import FileToBackUp
from backscroll.errors import DatabaseLockedError
from backscroll.readers.sqlite import Database

BUSY_TIMEOUT_SECONDS = 10.0  # for the first locked database
NEXT_BUSY_TIMEOUT_SECONDS = 1.0  # for the next ones: the same program probably holds all of them
_CACHE_KB = 16 * 1024


def take_snapshot(
    database: Path,
    folder: Path,
    remove_secrets: Callable[[sqlite3.Connection], None] | None,
    busy_timeout: float = BUSY_TIMEOUT_SECONDS,
) -> Path:
    """Copy a database of another program into a folder, with the content of its log. Return the copy.

    ``remove_secrets`` deletes rows of the copy; None keeps everything. The database may be in use. Raises
    `DatabaseUnreadableError`, `DatabaseLockedError` or `sqlite3.Error`.
    """
    copy = folder / "copy.db"
    with Database(database, busy_timeout=busy_timeout) as source:
        source.read(lambda connection: _copy(connection, copy))
    if remove_secrets is None:
        return copy
    cleaned = folder / "cleaned.db"
    cleaned.unlink(missing_ok=True)
    try:
        with closing(_connect(copy)) as connection:
            (journal_mode,) = connection.execute("pragma journal_mode").fetchone()
            connection.execute("pragma journal_mode = off")
            connection.execute("begin")
            remove_secrets(connection)
            connection.execute("commit")
            connection.execute("vacuum into ?", [str(cleaned)])
    finally:
        _delete(copy)
    if journal_mode == b"wal":
        with closing(_connect(cleaned)) as connection:
            connection.execute("pragma journal_mode = wal")  # the mode is stored in the file
    return cleaned


def _copy(connection: sqlite3.Connection, target: Path) -> None:
    # The lock for reading is awaited here, as long as the timeout. `backup` would wait for it forever.
    connection.execute("select 1 from sqlite_master").fetchone()
    _delete(target)
    target.touch(mode=0o600)
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        copy.execute("pragma synchronous = off")
        connection.backup(copy)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma synchronous = off")
    connection.execute(f"pragma cache_size = -{_CACHE_KB}")
    connection.text_factory = bytes  # as in `Database`: text is not always UTF-8
    return connection


def _delete(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


class SnapshotQueue:
    """Takes snapshots of databases in order, one ahead of the caller. A context manager."""

    def __init__(self, folder: Path, *, with_secrets: bool) -> None:
        self._folder = folder
        self._with_secrets = with_secrets
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[FileToBackUp] = deque()
        self._count = 0
        self._busy_timeout = BUSY_TIMEOUT_SECONDS
        self._started: dict[Path, Future[Path]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def start(self, files: Iterable[FileToBackUp]) -> None:
        """Begin with the first of the databases that `take` will ask for."""
        self._waiting.extend(files)
        self._start_next()

    def take(self, file: FileToBackUp) -> Path:
        """Return the snapshot of a database. The caller deletes it. Raises the errors of `take_snapshot`."""
        if file.location not in self._started:
            self._start(file)
        future = self._started.pop(file.location)
        try:
            return future.result()
        except DatabaseLockedError:
            self._busy_timeout = NEXT_BUSY_TIMEOUT_SECONDS
            raise
        finally:
            self._start_next()

    def _start_next(self) -> None:
        if self._waiting:
            self._start(self._waiting.popleft())

    def _start(self, file: FileToBackUp) -> None:
        self._count += 1
        folder = self._folder / f"snapshot-{self._count}"
        folder.mkdir()
        self._started[file.location] = self._pool.submit(self._take, file, folder)

    def _take(self, file: FileToBackUp, folder: Path) -> Path:
        source_backup = file.source.backup() if file.source is not None else None
        assert source_backup is not None
        remove_secrets = None if self._with_secrets else source_backup.remove_secrets
        return take_snapshot(file.location, folder, remove_secrets, self._busy_timeout)
