"""Open the archive's database, apply its migrations, run transactions, and translate errors.

Times in internal tables are integer milliseconds since 1970-01-01 UTC.
"""

import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from backscroll.errors import ArchiveError

MIN_SQLITE_VERSION = (3, 35, 0)
APPLICATION_ID = 0x42534352  # "BSCR", in the header of the file
MIGRATIONS = Path(__file__).with_name("migrations")
SCHEMA_VERSION = sum(name.endswith(".sql") for name in os.listdir(MIGRATIONS))  # noqa: PTH208 - 40 µs; glob 150
BUSY_TIMEOUT_SECONDS = 30.0
_CACHE_KB, _SHARD_CACHE_KB = 32 * 1024, 2 * 1024  # a shard is written once and hardly read
_WAL_BYTES = 64 * 1024 * 1024  # size of the write-ahead log that starts a checkpoint
_PAGE_BYTES = 8192  # most of an archive are blobs of many pages, and each page is written separately
_SHARD_PAGE_BYTES = 16_384  # most of a shard are blobs larger than the default page
_RETRY_SECONDS = 0.02


class ReadOnlyConnection(sqlite3.Connection):
    """Connection to an archive that cannot be written."""


def connect(path: Path, *, is_shard: bool = False) -> sqlite3.Connection:
    """Open an archive; create it if it does not exist. If it cannot be written, open it read-only.

    A shard is deleted when its process exits, and hardly anything is looked up in it. It is written in one
    transaction that the caller ends, without syncing to disk and without most indexes.
    Raises `ArchiveError` if the file is not an archive of this schema version or an older one.
    """
    if sqlite3.sqlite_version_info < MIN_SQLITE_VERSION:
        required = ".".join(map(str, MIN_SQLITE_VERSION))
        raise ArchiveError(
            f"Backscroll needs SQLite {required} or newer; this Python has {sqlite3.sqlite_version}.", path
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        is_new = not path.exists()
        db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None)
        if is_new:
            path.chmod(0o600)
            db.execute(f"pragma page_size = {_SHARD_PAGE_BYTES if is_shard else _PAGE_BYTES}")
            db.execute(f"pragma auto_vacuum = {'none' if is_shard else 'incremental'}")
        _set_journal_mode(db, "memory" if is_shard else "wal")
        db.execute(f"pragma synchronous = {'off' if is_shard else 'normal'}")
        db.execute("pragma temp_store = memory")
        db.execute("pragma foreign_keys = on")
        db.execute(f"pragma cache_size = -{_SHARD_CACHE_KB if is_shard else _CACHE_KB}")
        (page_bytes,) = db.execute("pragma page_size").fetchone()
        db.execute(f"pragma wal_autocheckpoint = {_WAL_BYTES // page_bytes}")
        if is_shard:
            db.execute("begin")
        _migrate(db, path)
        if is_shard:
            _drop_indexes(db)
    except (sqlite3.DatabaseError, OSError) as error:
        if not is_shard and is_read_only_failure(error) and path.is_file():
            return _connect_read_only(path)
        raise to_archive_error(error, path) from error
    return db


def _connect_read_only(path: Path) -> ReadOnlyConnection:
    """Open an archive whose file or folder cannot be written.

    SQLite creates a file beside a database in WAL mode, even to read it. It does not if the database is
    declared immutable; this ignores the write-ahead log, so there must be none.
    """
    wal = path.with_name(f"{path.name}-wal")
    has_wal = wal.exists() and wal.stat().st_size > 0
    uri = f"{path.absolute().as_uri()}?mode=ro{'' if has_wal else '&immutable=1'}"
    try:
        db = sqlite3.connect(
            uri, uri=True, timeout=BUSY_TIMEOUT_SECONDS, isolation_level=None, factory=ReadOnlyConnection
        )
        db.execute("pragma temp_store = memory")
        db.execute(f"pragma cache_size = -{_CACHE_KB}")
        version = _version(db, path)
    except (sqlite3.DatabaseError, OSError) as error:
        raise to_archive_error(error, path) from error
    if version != SCHEMA_VERSION:
        raise read_only_error(path)
    return db


def _drop_indexes(db: sqlite3.Connection) -> None:
    """Drop the indexes and triggers of a shard. The archive that it is merged into has them."""
    found = db.execute(
        "select type, name from sqlite_master where type in ('index', 'trigger') and sql is not null"
        " and name <> 'raw_row_shared'"  # every shared value is looked up before it is stored
    ).fetchall()
    for kind, name in found:
        db.execute(f"drop {kind} {name}")


def _set_journal_mode(db: sqlite3.Connection, mode: str) -> None:
    """Set the journal mode. Retry while another process creates the same archive."""
    deadline = time.monotonic() + BUSY_TIMEOUT_SECONDS
    while True:
        try:
            db.execute(f"pragma journal_mode = {mode}")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    version = _version(db, path)
    if version == SCHEMA_VERSION:
        return
    with transaction(db):
        version = _version(db, path)  # another process may have migrated it in the meantime
        for number, file in enumerate(sorted(MIGRATIONS.glob("*.sql")), start=1):
            if number <= version:
                continue
            for statement in _statements(file.read_text("utf-8")):
                db.execute(statement)
            db.execute("insert into migration (id, name, at) values (?, ?, ?)", [number, file.stem, now_ms()])
        db.execute(f"pragma application_id = {APPLICATION_ID}")
        db.execute(f"pragma user_version = {SCHEMA_VERSION}")


def _version(db: sqlite3.Connection, path: Path) -> int:
    """Return the archive's schema version. Raises `ArchiveError` if it cannot be migrated."""
    version = int(db.execute("pragma user_version").fetchone()[0])
    if version and db.execute("pragma application_id").fetchone()[0] != APPLICATION_ID:
        raise ArchiveError(
            f"The archive {path} was written by a development version of Backscroll and cannot be opened.",
            path,
            hint="Move it away and run 'backscroll sync' to build a new one from the tools' files.",
        )
    if version > SCHEMA_VERSION:
        raise ArchiveError(
            f"The archive {path} was written by a newer version of Backscroll (schema {version}, this version"
            f" supports {SCHEMA_VERSION}). Update Backscroll.",
            path,
            hint="To use another folder, pass --home.",
        )
    return version


def _statements(script: str) -> Iterator[str]:
    """Split an SQL script into statements. A trigger, which contains semicolons, is one statement."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def drop_foreign_triggers(path: Path) -> None:
    """Drop the triggers and views of a private copy that are not part of an archive.

    Those in an archive from someone else would run when it is written.
    """
    own = {
        _normalized(one) for file in MIGRATIONS.glob("*.sql") for one in _statements(file.read_text("utf-8"))
    }
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("pragma trusted_schema = off")
            found = db.execute(
                "select type, name, sql from sqlite_master where type in ('trigger', 'view')"
            ).fetchall()
            for kind, name, sql in found:
                if _normalized(sql or "") not in own:
                    quoted = name.replace('"', '""')
                    db.execute(f'drop {kind} "{quoted}"')
    except sqlite3.DatabaseError as error:
        raise to_archive_error(error, path) from error


def _normalized(statement: str) -> str:
    """Return a statement without comments, in a form that does not depend on case and spaces."""
    lines = (line.partition("--")[0] for line in statement.splitlines())
    return " ".join(" ".join(lines).casefold().rstrip("; \n").split())


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Run the block in a write transaction, or in a savepoint if one is open. Roll back on any exception."""
    is_nested = db.in_transaction
    db.execute("savepoint part" if is_nested else "begin immediate")
    try:
        yield
    except BaseException:
        db.execute("rollback to part" if is_nested else "rollback")
        if is_nested:
            db.execute("release part")
        raise
    db.execute("release part" if is_nested else "commit")


def text_list(names: Iterable[str]) -> str:
    """Return names as the list of an ``in``. They are constants of this program."""
    return "({})".format(", ".join(f"'{name}'" for name in names))


def to_ms(at: datetime) -> int:
    """Return a time as milliseconds since 1970."""
    return int(at.timestamp() * 1000)


def from_ms(milliseconds: int) -> datetime:
    """Return a time in UTC from milliseconds since 1970."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def now_ms() -> int:
    """Return the current time as milliseconds since 1970."""
    return time.time_ns() // 1_000_000


_MESSAGES = {
    sqlite3.SQLITE_FULL: "The disk of {path} is full. The archive is intact. Free some space and try again.",
    sqlite3.SQLITE_BUSY: "Another process is writing to the archive {path}. Try again when it has finished.",
    sqlite3.SQLITE_CORRUPT: "The archive {path} is damaged ({error}).",
    sqlite3.SQLITE_NOTADB: "{path} is not an archive ({error}).",
    sqlite3.SQLITE_READONLY: "The archive {path} is read-only. Check the permissions of the file and its"
    " folder.",
}
_RECOVER = "Run 'backscroll archive repair'. It keeps the damaged file and what can be read of it."
_HINTS = {
    sqlite3.SQLITE_CORRUPT: _RECOVER,
    sqlite3.SQLITE_NOTADB: _RECOVER,
    sqlite3.SQLITE_READONLY: "To use another folder, pass --home.",
}
# Errors of the code, not of the file.
_PROGRAMMING_ERRORS = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
)
_MIN_FREE_BYTES = 100_000  # shared memory of SQLite takes 32 KB
_READABLE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY)


def _is_full(folder: Path) -> bool:
    try:
        import shutil  # start-up: loads three compression modules

        return shutil.disk_usage(folder).free < _MIN_FREE_BYTES
    except OSError:
        return False


def to_archive_error(error: BaseException, path: Path) -> ArchiveError:
    """Return the `ArchiveError` for an error of the archive's file."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return ArchiveError(
            f"{error.filename} is not a folder.", path, hint="Choose another one with --home."
        )
    if isinstance(error, OSError):
        return ArchiveError(f"The archive {path} cannot be opened: {error.strerror or error}.", path)
    code = _primary_code(error)
    if code == sqlite3.SQLITE_IOERR and _is_full(path.parent):  # there is no space for shared memory
        return ArchiveError(_MESSAGES[sqlite3.SQLITE_FULL].format(path=path), path)
    message = _MESSAGES.get(code, "The archive {path} cannot be opened: {error}.")
    return ArchiveError(
        message.format(path=path, error=error),
        path,
        hint=_HINTS.get(code, ""),
        is_readable=code in _READABLE,
    )


def read_only_error(path: Path) -> ArchiveError:
    """Return the error of a write to an archive that was opened read-only."""
    code = sqlite3.SQLITE_READONLY
    return ArchiveError(_MESSAGES[code].format(path=path), path, hint=_HINTS[code], is_readable=True)


def decode_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that damaged bodies raise when they are decoded."""
    import struct  # loaded only after an error

    import msgspec

    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    return zstd.ZstdError, msgspec.MsgspecError, UnicodeDecodeError, struct.error


def is_read_only_failure(error: BaseException) -> bool:
    """Return whether the archive's file or folder cannot be written."""
    return _primary_code(error) in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def is_archive_failure(error: BaseException) -> bool:
    """Return whether the archive's file caused the error. Other errors are bugs."""
    is_candidate = isinstance(error, sqlite3.Error) or _is_damaged_body(error)
    return is_candidate and _primary_code(error) not in _PROGRAMMING_ERRORS


def _is_damaged_body(error: BaseException) -> bool:
    """Return whether the error was raised while the archive decoded a body."""
    if not isinstance(error, decode_errors()):
        return False
    import traceback  # loaded only after an error

    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    own = [name for name in modules if name.startswith("backscroll.")]
    return bool(own) and own[-1].startswith("backscroll.archive.")


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another process holds the lock."""
    return _primary_code(error) == sqlite3.SQLITE_BUSY


def _primary_code(error: BaseException) -> int:
    """Return the primary result code of SQLite. Errors raised by Python have none."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF
    if isinstance(error, decode_errors()) or str(error).startswith("Could not decode to UTF-8"):
        return sqlite3.SQLITE_CORRUPT
    return sqlite3.SQLITE_ERROR
