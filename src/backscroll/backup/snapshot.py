"""Consistent copies of databases, without credentials.

Deleting a row leaves its bytes in unused parts of the file, and so did every deletion of the tool before.
``vacuum into`` writes a new file with the current rows only. A copy of some sessions is a new file, too.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from backscroll.readers.sqlite.connection import Database

__all__ = ["CopyRows", "take_snapshot"]

CopyRows = Callable[[sqlite3.Connection, sqlite3.Connection], bool]  # to an empty database; False if nothing

BUSY_TIMEOUT_SECONDS = 10.0
_CACHE_KB = 16 * 1024


def take_snapshot(
    database: Path,
    folder: Path,
    remove_secrets: Callable[[sqlite3.Connection], None] | None,
    copy_rows: CopyRows | None = None,
) -> Path | None:
    """Copy a database of another program into a folder, with the content of its log. Return the copy.

    ``remove_secrets`` deletes rows of the copy; None keeps everything. ``copy_rows`` copies some rows instead
    of the whole database; if there are none, None is returned. The database may be in use. Raises
    `DatabaseUnreadableError`, `DatabaseLockedError` or `sqlite3.Error`.
    """
    copy = folder / "copy.db"
    with Database(database, busy_timeout=BUSY_TIMEOUT_SECONDS) as source:
        if not source.read(lambda connection: _copy(connection, copy, copy_rows)):
            return None
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


def _copy(connection: sqlite3.Connection, target: Path, copy_rows: CopyRows | None) -> bool:
    _delete(target)
    target.touch(mode=0o600)
    with closing(sqlite3.connect(target, isolation_level=None)) as copy:
        copy.execute("pragma synchronous = off")
        if copy_rows is None:
            connection.backup(copy)
            return True
        copy.execute("pragma journal_mode = off")
        copy.execute("begin")
        is_found = copy_rows(connection, copy)
        copy.execute("commit")
        return is_found


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma synchronous = off")
    connection.execute(f"pragma cache_size = -{_CACHE_KB}")
    connection.text_factory = bytes  # as in `Database`: text is not always UTF-8
    return connection


def _delete(path: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
