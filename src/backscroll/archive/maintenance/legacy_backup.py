"""Verified backup of another program's database, made before it is changed."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from backscroll.errors import DatabaseUnreadableError, DestinationError

__all__ = ["create_backup", "open_existing"]

_REQUIRED_SPACE_FACTOR = 3  # the backup, the new tables in addition to the old ones, and the journal


def open_existing(path: Path, *, mode: str = "rw", timeout: float = 5.0) -> sqlite3.Connection:
    """Open a database. Unlike `sqlite3.connect`, do not create it."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)


def create_backup(path: Path) -> Path:
    """Copy a database to ``<name>.backup-<UTC time>`` in the same folder, verify and return the copy.

    The caller keeps other processes from writing. Raises `DestinationError` if the disk has too little space.
    """
    size = sum(file.stat().st_size for file in (path, Path(f"{path}-wal")) if file.exists())
    free = shutil.disk_usage(path.parent).free
    if free < _REQUIRED_SPACE_FACTOR * size:
        raise DestinationError(
            f"The upgrade of {path} needs {_REQUIRED_SPACE_FACTOR * size / 1e6:,.1f} MB in the same folder;"
            f" {free / 1e6:,.1f} MB are free. Nothing was changed.",
            path,
        )
    target = _unused_name(path)
    partial = target.with_name(f"{target.name}.partial")
    try:
        with closing(open_existing(path, mode="ro")) as source, closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)
            shutil.copymode(path, partial)
            found = [row[0] for row in copy.execute("pragma integrity_check")]
            if found != ["ok"]:
                raise DatabaseUnreadableError(f"{path} is damaged: {found[0]}. Nothing was changed.", path)
            if _row_counts(copy) != _row_counts(source):
                raise DestinationError(f"The backup of {path} is incomplete. Nothing was changed.", partial)
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def _unused_name(path: Path) -> Path:
    timestamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    target = path.with_name(f"{path.name}.backup-{timestamp}")
    suffix = 1
    while target.exists():
        suffix += 1
        target = path.with_name(f"{path.name}.backup-{timestamp}-{suffix}")
    return target


def _row_counts(db: sqlite3.Connection) -> dict[str, int]:
    """Return the number of rows by table, without virtual tables: their rows are in other tables."""
    names = [
        name
        for (name,) in db.execute(
            "select name from sqlite_master where type = 'table' and sql not like 'create virtual%'"
        )
    ]
    quoted = {name: name.replace('"', '""') for name in names}
    return {
        name: db.execute(f'select count(*) from "{quoted[name]}"').fetchone()[0]  # noqa: S608 - quoted
        for name in names
    }
