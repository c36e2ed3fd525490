"""Read SQLite files of other programs without changing anything.

SQLite writes even if a file is opened read-only: it creates or changes the ``-shm`` file and rolls back the
journal of a crashed program. Four access modes avoid this. Each is used where it applies, the next one if it
fails:

shared    a ``-shm`` file exists: read together with the program that may be writing
private   a log without ``-shm``, or WAL mode without a log: no locks; the files are compared
          before and after, and read again if they changed
plain     a database with a rollback journal: SQLite's read-only mode
copy      a private copy, the last resort (a journal has to be rolled back)
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
from backscroll.readers.sqlite.change import change_token
from backscroll.readers.sqlite.files import (
    Copy,
    Files,
    add_suffix,
    is_in_wal_mode,
    stat_files,
    wait_until_stable,
)
from backscroll.readers.sqlite.wal import has_commits

__all__ = ["Database", "as_bytes", "change_token", "problem_code"]

T = TypeVar("T")
_Mode = Literal["shared", "private", "plain", "copy"]

_LOCKLESS_VFS = "win32-none" if os.name == "nt" else "unix-none"
MAX_CHANGES = 4  # changes of a file during reads without locks, before it is copied

# Error codes after which the next access mode is tried.
_RETRY_CODES = frozenset(
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


# Python cannot decode SQLite's message about a damaged schema and raises UnicodeDecodeError instead.
_FAILURES = (sqlite3.Error, UnicodeDecodeError)


class _Connection(NamedTuple):
    """An open connection, and the state of the files when it was opened."""

    mode: _Mode
    connection: sqlite3.Connection
    files: Files
    copy: Copy | None = None

    def is_valid_for(self, files: Files) -> bool:
        """Return whether the connection can be used again with the files in this state."""
        if self.mode in ("private", "copy"):
            return files.content == self.files.content
        return files.identity == self.files.identity

    def close(self) -> None:
        self.connection.close()
        if self.copy is not None:
            self.copy.close()


class Database:
    """Read-only access to an SQLite file of another program. A context manager.

    Nothing is opened before the first `read`. Text is returned as bytes, because it is not always UTF-8; see
    `as_bytes`. The connection stays open between reads, outside of a transaction. Close it soon: a program
    that exits meanwhile leaves its log behind. Not thread-safe, and not for a file that this process has
    open otherwise: they would share locks.
    """

    def __init__(self, path: Path, *, busy_timeout: float = 2.0) -> None:
        self._path = path.resolve()
        self._busy_timeout = busy_timeout
        self._open_connection: _Connection | None = None

    @property
    def mode(self) -> str:
        """Return the access mode of the last read; empty before the first one."""
        return self._open_connection.mode if self._open_connection else ""

    def __enter__(self) -> "Database":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._open_connection is not None:
            self._open_connection.close()
            self._open_connection = None

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in one read transaction, and again in another access mode if the file changed.

        `work` may run more than once, so it must have no side effects and return no cursor. Raises
        `DatabaseNotFoundError`, `DatabaseLockedError` or `DatabaseUnreadableError`. An SQL error, such as a
        missing table, is raised as `sqlite3.OperationalError`.
        """
        failed_modes: set[_Mode] = set()
        changes = 0
        while True:
            opened = self._openedfor(failed_modes)
            try:
                result = _run(opened.connection, work)
            except _FAILURES as error:
                if self._has_changed(opened):
                    changes += 1
                elif _may_try_next_mode(opened.mode, error):
                    failed_modes.add(opened.mode)
                else:
                    self.close()
                    raise _translate_error(error, self._path, self._busy_timeout) from error
            else:
                if not self._has_changed(opened):
                    return result
                changes += 1
            self.close()
            if changes >= MAX_CHANGES:
                failed_modes.add("private")

    def _openedfor(self, failed_modes: set[_Mode]) -> _Connection:
        """Return the open connection if it is still valid, else open the first access mode that works."""
        files = stat_files(self._path)
        if self._open_connection is not None and self._open_connection.is_valid_for(files):
            return self._open_connection
        self.close()
        modes: tuple[_Mode, ...]
        if files.wal is None and not is_in_wal_mode(self._path):
            modes = ("plain", "copy")
        elif files.wal is not None and files.shm is not None:
            modes = ("shared", "private", "copy")
        else:
            modes = ("private", "copy")
        for mode in modes:
            if mode in failed_modes:
                continue
            try:
                self._open_connection = self._open(mode, files)
            except sqlite3.Error as error:
                # The file disappeared, its path is too long for SQLite, or locking is not supported.
                if mode == "copy":
                    raise _translate_error(error, self._path, self._busy_timeout) from error
                failed_modes.add(mode)
                continue
            return self._open_connection
        raise DatabaseUnreadableError(f"{self._path} cannot be read in any mode.", self._path)

    def _open(self, mode: _Mode, files: Files) -> _Connection:
        match mode:
            case "shared":
                return _Connection(mode, self._connect("mode=ro&readonly_shm=1"), files)
            case "plain":
                return _Connection(mode, self._connect("mode=ro"), files)
            case "private":
                return self._open_private()
            case "copy":
                copy = Copy(self._path)
                return _Connection(mode, _connect(copy.path, "mode=rw", self._busy_timeout), copy.files, copy)

    def _open_private(self) -> _Connection:
        files = wait_until_stable(self._path)
        # Without a committed transaction in the log, all data is in the main file. SQLite
        # would create a missing log, or delete an unused one, even through the connection below.
        if files.wal is None or not has_commits(add_suffix(self._path, "-wal")):
            return _Connection("private", self._connect("mode=ro&immutable=1"), files)
        connection = self._connect(f"mode=ro&vfs={_LOCKLESS_VFS}")
        connection.execute("pragma locking_mode = exclusive")  # keeps the index of the log in memory
        return _Connection("private", connection, files)

    def _connect(self, options: str) -> sqlite3.Connection:
        return _connect(self._path, options, self._busy_timeout)

    def _has_changed(self, opened: _Connection) -> bool:
        """Return whether the file changed during a read without locks."""
        return opened.mode == "private" and stat_files(self._path).content != opened.files.content


def _connect(path: Path, options: str, busy_timeout: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.as_uri()}?{options}",
        uri=True,
        timeout=busy_timeout,
        isolation_level=None,
        check_same_thread=False,  # a source may be closed by another thread
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


def _may_try_next_mode(mode: _Mode, error: sqlite3.Error | UnicodeDecodeError) -> bool:
    """Return whether the next access mode may succeed."""
    code = _primary_code(error)
    match mode:
        case "copy":
            return False
        case "plain":
            # Only a journal that has to be rolled back requires a copy. A lock means that a program is
            # writing.
            return code == sqlite3.SQLITE_READONLY
    return code in _RETRY_CODES


def _primary_code(error: sqlite3.Error | UnicodeDecodeError) -> int:
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF


def _translate_error(
    error: sqlite3.Error | UnicodeDecodeError, path: Path, busy_timeout: float
) -> BackscrollError | sqlite3.Error | UnicodeDecodeError:
    """Return the error to raise to the caller."""
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
    """Return the problem code of a database error."""
    match error:
        case DatabaseLockedError():
            return "locked-database"
        case DatabaseNotFoundError():
            return "missing-database"
        case DatabaseUnreadableError(__cause__=PermissionError()):
            return "permission-denied"
    return "unreadable-database"


def as_bytes(value: object) -> bytes | None:
    """Return the bytes of a TEXT, BLOB, numeric or NULL value."""
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
