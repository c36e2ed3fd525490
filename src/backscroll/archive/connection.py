"""The archive's file: opened, brought to today's schema, and guarded against yesterday's program."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from backscroll.archive.errors import is_busy, trouble
from backscroll.errors import ArchiveError

__all__ = ["BUSY_SECONDS", "OLDEST_SQLITE", "SCHEMA", "connect", "transaction"]

OLDEST_SQLITE = (3, 35, 0)
SCHEMA = 17  # how many migrations there are; they are loaded only for an archive that lacks one
_CACHE, _SHARD_CACHE = 32 * 1024, 2 * 1024  # KB of pages; what is put into a shard is hardly asked for again
_LOG = 64 * 1024 * 1024  # bytes that the write-ahead log may grow to before they are brought home
_PAGE = 8192  # bytes: most of an archive are bodies of many pages, and each page is written by itself
_SHARD_PAGE = 16_384  # bytes: most of a shard are bodies larger than a page of the usual size
BUSY_SECONDS = 30.0  # to wait for somebody else's transaction


def connect(path: Path, *, is_shard: bool = False) -> sqlite3.Connection:
    """Open an archive, making it when there is none. One written by a newer version is refused.

    A shard is thrown away when its process dies, and hardly anything is looked up in it: it is written in one
    transaction that its owner ends, without care for the disk and without most indexes.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        raise ArchiveError(f"SQLite {wanted} or newer is needed; Python has {sqlite3.sqlite_version}", path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        is_new = not path.exists()
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        if is_new:
            path.chmod(0o600)
            db.execute(f"pragma page_size = {_SHARD_PAGE if is_shard else _PAGE}")
            db.execute(f"pragma auto_vacuum = {'none' if is_shard else 'incremental'}")
        _set_journal(db, "memory" if is_shard else "wal")
        db.execute(f"pragma synchronous = {'off' if is_shard else 'normal'}")
        db.execute("pragma temp_store = memory")
        db.execute("pragma foreign_keys = on")
        db.execute(f"pragma cache_size = -{_SHARD_CACHE if is_shard else _CACHE}")
        (page,) = db.execute("pragma page_size").fetchone()  # of an archive that was made earlier another
        db.execute(f"pragma wal_autocheckpoint = {_LOG // page}")
        if is_shard:
            db.execute("begin")
        _migrate(db, path)
        if is_shard:
            _strip(db)
    except (sqlite3.DatabaseError, OSError) as error:
        raise trouble(error, path) from error
    return db


def _strip(db: sqlite3.Connection) -> None:
    """Drop indexes and triggers: what they find and note is found and noted where a shard is taken in."""
    found = db.execute(
        "select type, name from sqlite_master where type in ('index', 'trigger') and sql is not null"
        " and name <> 'kept_row_shared'"  # a blob is looked for before it is kept
    ).fetchall()
    for kind, name in found:
        db.execute(f"drop {kind} {name}")


def _set_journal(db: sqlite3.Connection, mode: str) -> None:
    """Have changes journalled so. Of two that make an archive at once, one has to ask again."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute(f"pragma journal_mode = {mode}")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    version = db.execute("pragma user_version").fetchone()[0]
    if version == SCHEMA:
        return
    if version > SCHEMA:
        raise ArchiveError(
            f"the archive {path} was written by a newer version of Backscroll (schema {version}, this one"
            f" knows {SCHEMA}); update Backscroll, or name another folder with --home",
            path,
        )
    from backscroll.archive.schema import MIGRATIONS
    from backscroll.archive.storage.codec import number_of

    db.create_function("number_of", 1, lambda id_: id_ if id_ is None else number_of(id_), deterministic=True)
    db.create_function("tokens_of", 2, _tokens_of, deterministic=True)
    with transaction(db):
        version = db.execute("pragma user_version").fetchone()[0]
        db.execute(
            "create table if not exists migration (number integer primary key, name text, at timestamp)"
        )
        for number, (name, script) in enumerate(MIGRATIONS, start=1):
            if number <= version:
                continue
            for statement in filter(str.strip, script.split(";\n")):
                db.execute(statement)
            db.execute(
                "insert into migration values (?, ?, ?)", [number, name, datetime.now(UTC).isoformat()]
            )
        db.execute(f"pragma user_version = {SCHEMA}")


def _tokens_of(usage: bytes, name: str) -> int | float | str | None:
    """One figure of a response, from how the first archives kept it."""
    import msgspec

    found: int | float | str | None = msgspec.msgpack.decode(usage).get(name)
    return found


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; one writer at a time, and a reader is never kept waiting."""
    is_part = db.in_transaction
    db.execute("savepoint part" if is_part else "begin immediate")
    try:
        yield
    except BaseException:
        db.execute("rollback to part" if is_part else "rollback")
        if is_part:
            db.execute("release part")
        raise
    db.execute("release part" if is_part else "commit")
