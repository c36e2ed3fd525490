"""Read SQLite databases of other programs without changing anything, and copy some of their rows.

SQLite writes even if a file is opened read-only: it creates or changes the ``-shm`` file and rolls back the
journal of a crashed program. Four access modes avoid this. Each is used where it applies, the next one if it
fails:

shared    a ``-shm`` file exists: read together with the program that may be writing
private   a log without ``-shm``, or WAL mode without a log: no locks; the files are compared
          before and after, and read again if they changed
plain     a database with a rollback journal: SQLite's read-only mode
copy      a private copy, the last resort (a journal has to be rolled back)
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import stat
import struct
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, NamedTuple, TypeVar

from backscroll.errors import (
    BackscrollError,
    DatabaseLockedError,
    DatabaseNotFoundError,
    DatabaseUnreadableError,
)
from backscroll.readers.temp_folder import TempFolder

T = TypeVar("T")
_Mode = Literal["shared", "private", "plain", "copy"]
MAX_CHANGES = 4  # changes of a file during reads without locks, before it is copied
MAX_COPIES = 5
CLOCK_STEP_SECONDS = 0.02  # file system clocks have steps of up to 10 ms: two writes can have the same mtime
_LOCKLESS_VFS = "win32-none" if os.name == "nt" else "unix-none"
_WAL_MODE = 2  # bytes 18 and 19 of the main file
_VIRTUAL_TABLE = re.compile(rb"\s*create\s+virtual\s+table", re.IGNORECASE)
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

    def __enter__(self) -> Database:
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
            opened = self._open_for(failed_modes)
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

    def _open_for(self, failed_modes: set[_Mode]) -> _Connection:
        """Return the open connection if it is still valid, else open the first access mode that works."""
        files = _stat_files(self._path)
        if self._open_connection is not None and self._open_connection.is_valid_for(files):
            return self._open_connection
        self.close()
        modes: tuple[_Mode, ...]
        if files.wal is None and not _is_in_wal_mode(self._path):
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

    def _open(self, mode: _Mode, files: _Files) -> _Connection:
        match mode:
            case "shared":
                return _Connection(mode, self._connect("mode=ro&readonly_shm=1"), files)
            case "plain":
                return _Connection(mode, self._connect("mode=ro"), files)
            case "private":
                return self._open_private()
            case "copy":
                copy = _Copy(self._path)
                return _Connection(mode, _connect(copy.path, "mode=rw", self._busy_timeout), copy.files, copy)

    def _open_private(self) -> _Connection:
        files = _wait_until_stable(self._path)
        # Without a committed transaction in the log, all data is in the main file. SQLite
        # would create a missing log, or delete an unused one, even through the connection below.
        if files.wal is None or not has_commits(_add_suffix(self._path, "-wal")):
            return _Connection("private", self._connect("mode=ro&immutable=1"), files)
        connection = self._connect(f"mode=ro&vfs={_LOCKLESS_VFS}")
        connection.execute("pragma locking_mode = exclusive")  # keeps the index of the log in memory
        return _Connection("private", connection, files)

    def _connect(self, options: str) -> sqlite3.Connection:
        return _connect(self._path, options, self._busy_timeout)

    def _has_changed(self, opened: _Connection) -> bool:
        """Return whether the file changed during a read without locks."""
        return opened.mode == "private" and _stat_files(self._path).content != opened.files.content


class _Connection(NamedTuple):
    """An open connection, and the state of the files when it was opened."""

    mode: _Mode
    connection: sqlite3.Connection
    files: _Files
    copy: _Copy | None = None

    def is_valid_for(self, files: _Files) -> bool:
        """Return whether the connection can be used again with the files in this state."""
        if self.mode in ("private", "copy"):
            return files.content == self.files.content
        return files.identity == self.files.identity

    def close(self) -> None:
        self.connection.close()
        if self.copy is not None:
            self.copy.close()


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


# Files of a database


class _Stamp(NamedTuple):
    """Identity, size and modification time of a file."""

    inode: int
    size: int
    mtime_ns: int


class _Files(NamedTuple):
    """State of a database's main file, log, index and journal."""

    main: _Stamp
    wal: _Stamp | None
    shm: _Stamp | None
    journal: _Stamp | None

    @property
    def content(self) -> tuple[_Stamp | None, ...]:
        """Return the files with data. The -shm file is only an index of the -wal file."""
        return self.main, self.wal, self.journal

    @property
    def identity(self) -> tuple[int | None, ...]:
        """Return the identity of the files. The journal is excluded: every write creates and deletes it."""
        return tuple(stamp and stamp.inode for stamp in (self.main, self.wal, self.shm))


def _stat_files(path: Path) -> _Files:
    """Return the current state of the files. Raises if the main file is missing or not a file."""
    name = str(path)
    try:
        found = os.stat(name)  # noqa: PTH116 - this is done before and after every reading, and costs half so
    except (FileNotFoundError, NotADirectoryError) as error:
        raise DatabaseNotFoundError(f"There is no database at {path}.", path) from error
    except OSError as error:
        raise DatabaseUnreadableError(f"{path} cannot be read: {error.strerror}.", path) from error
    if not stat.S_ISREG(found.st_mode):
        raise DatabaseUnreadableError(f"{path} is not a file.", path)
    if not found.st_size:
        # SQLite deletes the journal of an empty main file.
        raise DatabaseUnreadableError(f"{path} is empty: it has 0 bytes.", path)
    main = _Stamp(found.st_ino, found.st_size, found.st_mtime_ns)
    return _Files(main, _stamp(name + "-wal"), _stamp(name + "-shm"), _stamp(name + "-journal"))


def _stamp(name: str) -> _Stamp | None:
    try:
        found = os.stat(name)  # noqa: PTH116 - as above
    except OSError:
        return None
    return _Stamp(found.st_ino, found.st_size, found.st_mtime_ns)


def _wait_until_stable(path: Path) -> _Files:
    """Wait until the next write must change a modification time. Return the state of the files."""
    files = _stat_files(path)
    for _ in range(5):
        newest = max(stamp.mtime_ns for stamp in files.content if stamp is not None)
        age = time.time() - newest / 1e9
        if not 0 <= age < CLOCK_STEP_SECONDS:
            break
        time.sleep(CLOCK_STEP_SECONDS - age)
        files = _stat_files(path)
    return files


def _is_in_wal_mode(path: Path) -> bool:
    """Return whether the main file is in WAL mode, even if there is no log."""
    try:
        with path.open("rb") as file:
            header = file.read(20)
    except OSError as error:
        raise DatabaseUnreadableError(f"{path} cannot be opened: {error.strerror}.", path) from error
    return header.startswith(b"SQLite format 3\0") and _WAL_MODE in header[18:20]


def _add_suffix(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


class _Copy:
    """A private copy, deleted by `close`. SQLite may change it."""

    def __init__(self, path: Path) -> None:
        try:
            self._folder = TempFolder()
        except OSError as error:
            raise DatabaseUnreadableError(
                f"{path} cannot be read in place, nor copied to be read: {error.strerror or error}.", path
            ) from error
        try:
            self.files = self._copy_files(path)
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        return self._folder.path / "copy.db"

    def _copy_files(self, path: Path) -> _Files:
        for attempt in range(MAX_COPIES):
            files = _wait_until_stable(path)
            try:
                for suffix in ("", "-wal", "-journal"):
                    self._copy_file(_add_suffix(path, suffix), suffix)
            except OSError as error:
                raise DatabaseUnreadableError(
                    f"{path} cannot be read in place, nor copied to be read: {error.strerror}.", path
                ) from error
            is_unchanged = _stat_files(path).content == files.content
            # If the copied files did not change and the copy is damaged, the original is damaged:
            # what can be read of it is read.
            if is_unchanged and (self._is_sound() or attempt == MAX_COPIES - 1):
                return files
        raise DatabaseUnreadableError(
            f"{path} changed each of the {MAX_COPIES} times it was copied to be read; try again later.", path
        )

    def _copy_file(self, original: Path, suffix: str) -> None:
        for stale in (_add_suffix(self.path, suffix), _add_suffix(self.path, "-shm")):
            stale.unlink(missing_ok=True)
        if not suffix or original.exists():
            target = _add_suffix(self.path, suffix)
            target.touch(mode=0o600)
            shutil.copyfile(original, target)

    def _is_sound(self) -> bool:
        connection = sqlite3.connect(self.path)
        try:
            return bool(connection.execute("pragma quick_check(1)").fetchone() == ("ok",))
        except (sqlite3.DatabaseError, UnicodeDecodeError):  # UnicodeDecodeError: SQLite quotes damaged data
            return False
        finally:
            connection.close()

    def close(self) -> None:
        self._folder.close()


# Copies of some rows, with all storage classes


def table_names(connection: sqlite3.Connection) -> list[str]:
    """Return the names of all tables, without shadow tables."""
    virtual = _virtual_tables(connection)
    rows = connection.execute("select name from sqlite_master where type = 'table' order by rowid").fetchall()
    return [name for (raw,) in rows if not _is_internal(name := _text(raw), virtual)]


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def _virtual_tables(connection: sqlite3.Connection) -> list[str]:
    rows = connection.execute("select name, sql from sqlite_master where type = 'table'").fetchall()
    return [_text(name) for name, sql in rows if sql is not None and _VIRTUAL_TABLE.match(_bytes(sql))]


def _is_internal(name: str, virtual: Sequence[str]) -> bool:
    return name.startswith("sqlite_") or any(name.startswith(f"{table}_") for table in virtual)


def _bytes(value: bytes | str) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = 0x377F0682  # lowest bit set: checksums of big-endian words
_VERIFIED_FRAMES = 2_000  # their checksums are verified (0.1 ms per page); later ones only need a valid salt


def has_commits(log: Path) -> bool:
    """Return whether the log has a committed transaction; False if there is no log. SQLite is not used.

    SQLite deletes a log without committed transactions when the last connection closes, even a read-only
    connection without locks. Therefore the log of another program is inspected before SQLite opens it.
    """
    try:
        file = log.open("rb")
    except FileNotFoundError:
        return False
    except OSError as error:
        raise DatabaseUnreadableError(f"{log} cannot be opened: {error.strerror}.", log) from error
    with file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return False
        magic, _, page_size, _, *salt, sum1, sum2 = _HEADER.unpack(header)
        if magic & ~1 != _MAGIC or not 512 <= page_size <= 65536:
            return False
        order = ">" if magic & 1 else "<"
        if _checksum(header[:24], (0, 0), order) != (sum1, sum2):
            return False
        return _finds_commit(file, page_size, salt=tuple(salt), start=(sum1, sum2), order=order)


def _finds_commit(
    file: BinaryIO, page_size: int, *, salt: tuple[int, ...], start: tuple[int, int], order: str
) -> bool:
    sums, number = start, 0
    while len(frame := file.read(_FRAME.size + page_size)) == _FRAME.size + page_size:
        _, size_after_commit, salt1, salt2, sum1, sum2 = _FRAME.unpack_from(frame)
        if (salt1, salt2) != salt:
            return False
        if number < _VERIFIED_FRAMES:
            sums = _checksum(frame[:8], sums, order)
            sums = _checksum(frame[_FRAME.size :], sums, order)
            if sums != (sum1, sum2):
                return False
        if size_after_commit:
            return True
        number += 1
    return False


def _checksum(data: bytes, start: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(islice(words, 0, None, 2), islice(words, 1, None, 2), strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
