"""Somebody else's SQLite file, read without leaving a trace.

SQLite opened "read-only" still writes: it creates a ``-shm`` beside a database
that has a ``-wal``, changes the one that is there, rolls back a crashed
program's journal. Four ways of reading do none of this; each is used where it
is right, and the next one where it fails:

shared    a ``-shm`` is there: join the program that may be writing, as a reader that only looks at it
private   a log without ``-shm``, or a database in WAL mode without a log: no locks are taken, so the
          files are compared before and after, and what moved is read again
plain     a rollback-journal database: SQLite's own read-only mode
copy      a private copy, when nothing else is left (a crashed writer's journal has to be rolled back)
"""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, TypeVar

from backscroll.errors import (
    BackscrollError,
    DatabaseLockedError,
    DatabaseNotFoundError,
    DatabaseUnreadableError,
)
from backscroll.readers.sqlite_change import change_token
from backscroll.readers.sqlite_files import (
    Copy,
    Files,
    add_suffix,
    is_in_wal_mode,
    stat_files,
    wait_until_stable,
)
from backscroll.readers.sqlite_wal import has_commits

__all__ = ["Database", "as_bytes", "change_token", "problem_code"]

T = TypeVar("T")
_Way = Literal["shared", "private", "plain", "copy"]

_LOCKLESS_VFS = "win32-none" if os.name == "nt" else "unix-none"
_TRIES = 4  # times a file may move under a lock-free reading before it is copied instead

# What a step of the ladder answers when another step may still do.
_STEP_DOWN = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_READONLY,
    }
)
_REASONS = {
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_NOTADB: "is not a SQLite database, or it is encrypted",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_PERM: "may not be opened",
    sqlite3.SQLITE_AUTH: "may not be opened",
    sqlite3.SQLITE_IOERR: "cannot be read from its disk",
    sqlite3.SQLITE_READONLY: "cannot be read without changing it",
    sqlite3.SQLITE_PROTOCOL: "is being changed too fast to be read",
    sqlite3.SQLITE_FULL: "cannot be read: no space is left for temporary files",
}


# Python cannot decode the message in which SQLite quotes a damaged schema, and raises that instead.
_FAILURES = (sqlite3.Error, UnicodeDecodeError)


class _Footing(NamedTuple):
    """An open connection, and what the files were like when it was opened."""

    way: _Way
    connection: sqlite3.Connection
    files: Files
    copy: Copy | None = None

    def still_holds(self, files: Files) -> bool:
        """Whether the connection may be used for another reading now that the files are like this."""
        if self.way in ("private", "copy"):
            return files.content == self.files.content
        return files.identity == self.files.identity

    def close(self) -> None:
        self.connection.close()
        if self.copy is not None:
            self.copy.close()


class Database:
    """Somebody else's SQLite file, read without leaving a trace. A context manager.

    Nothing is opened before the first `read`. Text comes as bytes, since what
    these files call text is not always UTF-8; see `as_bytes`. The connection
    stays open between two readings, outside any transaction: close it soon, for
    a program that ends meanwhile leaves its log behind. Not for two threads at
    a time, nor for a file that the same process has open otherwise, least of all
    to write: the locks and the shared index of one would be the other's.
    """

    def __init__(self, path: Path, *, busy_timeout: float = 2.0) -> None:
        self._path = path.resolve()
        self._busy_timeout = busy_timeout
        self._footing: _Footing | None = None

    @property
    def way(self) -> str:
        """Which way of reading answered last; empty before the first reading."""
        return self._footing.way if self._footing else ""

    def __enter__(self) -> "Database":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._footing is not None:
            self._footing.close()
            self._footing = None

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one short read transaction, and again from a better footing when the file moved.

        `work` may be called more than once, so it returns what it found instead
        of adding to something, and returns no cursor. Raises
        `DatabaseNotFoundError`, `DatabaseLockedError` or
        `DatabaseUnreadableError`; an error in the SQL itself, such as a table
        that is not there, arrives as `sqlite3.OperationalError`.
        """
        refused: set[_Way] = set()
        moves = 0
        while True:
            footing = self._stand(refused)
            try:
                result = _run(footing.connection, work)
            except _FAILURES as error:
                if self._has_moved(footing):
                    moves += 1
                elif _may_step_down(footing.way, error):
                    refused.add(footing.way)
                else:
                    self.close()
                    raise _told(error, self._path, self._busy_timeout) from error
            else:
                if not self._has_moved(footing):
                    return result
                moves += 1
            self.close()
            if moves >= _TRIES:
                refused.add("private")

    def _stand(self, refused: set[_Way]) -> _Footing:
        """The open connection if it still serves, or the first step of the ladder that fits the files."""
        files = stat_files(self._path)
        if self._footing is not None and self._footing.still_holds(files):
            return self._footing
        self.close()
        ladder: tuple[_Way, ...]
        if files.wal is None and not is_in_wal_mode(self._path):
            ladder = ("plain", "copy")
        elif files.wal is not None and files.shm is not None:
            ladder = ("shared", "private", "copy")
        else:
            ladder = ("private", "copy")
        for way in ladder:
            if way in refused:
                continue
            try:
                self._footing = self._open(way, files)
            except sqlite3.Error as error:
                # Gone in this moment, on a path too long for SQLite, or without that way of locking.
                if way == "copy":
                    raise _told(error, self._path, self._busy_timeout) from error
                refused.add(way)
                continue
            return self._footing
        raise DatabaseUnreadableError(f"{self._path} cannot be read in any way.", self._path)

    def _open(self, way: _Way, files: Files) -> _Footing:
        match way:
            case "shared":
                return _Footing(way, self._connect("mode=ro&readonly_shm=1"), files)
            case "plain":
                return _Footing(way, self._connect("mode=ro"), files)
            case "private":
                return self._open_private()
            case "copy":
                copy = Copy(self._path)
                return _Footing(way, _connect(copy.path, "mode=rw", self._busy_timeout), copy.files, copy)

    def _open_private(self) -> _Footing:
        files = wait_until_stable(self._path)
        # Without a committed transaction in the log, everything is in the main file; and SQLite
        # would create a missing log, or delete an idle one, even through the connection below.
        if files.wal is None or not has_commits(add_suffix(self._path, "-wal")):
            return _Footing("private", self._connect("mode=ro&immutable=1"), files)
        connection = self._connect(f"mode=ro&vfs={_LOCKLESS_VFS}")
        connection.execute("pragma locking_mode = exclusive")  # keeps the index of the log in memory
        return _Footing("private", connection, files)

    def _connect(self, options: str) -> sqlite3.Connection:
        return _connect(self._path, options, self._busy_timeout)

    def _has_moved(self, footing: _Footing) -> bool:
        """Whether a reading that took no locks may have seen two states of the file."""
        return footing.way == "private" and stat_files(self._path).content != footing.files.content


def _connect(path: Path, options: str, busy_timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?{options}",
        uri=True,
        timeout=busy_timeout,
        isolation_level=None,
        check_same_thread=False,  # a source may be closed by another thread than the one that read
    )
    connection.text_factory = bytes
    return connection


def _run(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute("pragma query_only = on")
    connection.execute("begin")
    try:
        return work(connection)
    finally:
        if connection.in_transaction:
            connection.execute("rollback")


def _may_step_down(way: _Way, error: sqlite3.Error | UnicodeDecodeError) -> bool:
    """Whether the next step of the ladder may do what this one could not."""
    code = _primary_code(error)
    match way:
        case "copy":
            return False
        case "plain":
            # Only a journal that has to be rolled back calls for a copy. A lock is somebody at work.
            return code == sqlite3.SQLITE_READONLY
    return code in _STEP_DOWN


def _primary_code(error: sqlite3.Error | UnicodeDecodeError) -> int:
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def _told(
    error: sqlite3.Error | UnicodeDecodeError, path: Path, busy_timeout: float
) -> BackscrollError | sqlite3.Error | UnicodeDecodeError:
    """The error as a caller should see it."""
    code = _primary_code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return DatabaseLockedError(
            f"{path} is locked: another program holds it and did not let go within {busy_timeout:g} s. "
            "Close that program or try again later.",
            path,
        )
    if code in _REASONS:
        return DatabaseUnreadableError(f"{path} {_REASONS[code]} ({error}).", path)
    return error


def problem_code(error: Exception) -> str:
    """Return the code of the problem that an error of a database amounts to."""
    match error:
        case DatabaseLockedError():
            return "locked-database"
        case DatabaseNotFoundError():
            return "missing-database"
    return "unreadable-database"


def as_bytes(value: object) -> bytes | None:
    """The bytes of a cell that may be TEXT, BLOB, a number or NULL."""
    match value:
        case None:
            return None
        case bytes():
            return value
        case str():
            return value.encode("utf-8", "surrogatepass")
        case bytearray() | memoryview():
            return bytes(value)
    return str(value).encode()
