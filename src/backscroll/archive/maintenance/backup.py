"""A copy of somebody's database beside it, made and checked before anything is changed."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from backscroll.errors import DatabaseUnreadableError, DestinationError

__all__ = ["create_backup", "open_existing"]

_TIMES_ITS_SIZE = 3  # the copy, the new tables beside the old ones, and the journal


def open_existing(path: Path, *, mode: str = "rw", timeout: float = 5.0) -> sqlite3.Connection:
    """Open a database that is there; none is made."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)


def create_backup(path: Path) -> Path:
    """Copy a database to ``<name>.backup-<UTC time>``. It returns only when the copy is known to be good.

    The caller keeps others from writing meanwhile. Raises `DestinationError` when there is no room.
    """
    size = sum(file.stat().st_size for file in (path, Path(f"{path}-wal")) if file.exists())
    free = shutil.disk_usage(path.parent).free
    if free < _TIMES_ITS_SIZE * size:
        raise DestinationError(
            f"{path} needs {_TIMES_ITS_SIZE * size / 1e6:,.1f} MB beside it to be upgraded safely, and"
            f" {free / 1e6:,.1f} MB are free. Nothing was changed.",
            path,
        )
    target = _free_name(path)
    partial = target.with_name(f"{target.name}.partial")
    try:
        with closing(open_existing(path, mode="ro")) as source, closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)
            shutil.copymode(path, partial)
            found = [row[0] for row in copy.execute("pragma integrity_check")]
            if found != ["ok"]:
                raise DatabaseUnreadableError(
                    f"{path} is damaged and was left as it is: {found[0]}. Nothing was changed.", path
                )
            if _counts(copy) != _counts(source):
                raise DestinationError(f"the copy of {path} is not whole. Nothing was changed.", partial)
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def _free_name(path: Path) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    target = path.with_name(f"{path.name}.backup-{stamp}")
    number = 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.backup-{stamp}-{number}")
    return target


def _counts(db: sqlite3.Connection) -> dict[str, int]:
    """Rows by table; a virtual table's rows lie in others."""
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
