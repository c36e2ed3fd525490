"""Open the archive's database, apply its migrations, and run transactions.

Times in internal tables are integer milliseconds since 1970-01-01 UTC.
"""

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from backscroll.archive.errors import is_busy, is_read_only_failure, read_only_error, to_archive_error
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
