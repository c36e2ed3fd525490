"""Check whether a plan can be written at all: names, access, tables. Nothing is written."""

import os
from collections.abc import Iterator
from pathlib import Path

from backscroll.errors import DatabaseUnreadableError, DestinationError
from backscroll.model.change import ChangePlan
from backscroll.readers.sqlite import Database, table_names

_MAX_NAME_BYTES = 255
_MAX_PATH_BYTES = 4096


def check_plan(plan: ChangePlan) -> None:
    """Raise `DestinationError` if a path is too long, or a file, folder or database cannot be written.

    Raises `DatabaseUnreadableError` if a database does not have the tables of the planned rows.
    """
    created = {change.path for change in plan.files if change.before is None}
    checked: set[Path] = set()
    for path in _written_paths(plan):
        _check_name(path)
        folder = _existing_folder(path.parent)
        if folder not in checked:
            checked.add(folder)
            _check_access(folder)
    for database in dict.fromkeys(row.database for row in plan.rows):
        if database not in created:
            _check_access(database)
            _check_tables(database, plan)


def _written_paths(plan: ChangePlan) -> Iterator[Path]:
    yield from (change.path for change in plan.files)
    yield from dict.fromkeys(line.path for line in plan.lines)
    yield from dict.fromkeys(row.database for row in plan.rows)


def _check_name(path: Path) -> None:
    try:
        longest, length = max(len(os.fsencode(part)) for part in path.parts), len(os.fsencode(path))
    except UnicodeEncodeError as error:
        raise DestinationError(f"{path!r} is not a valid path on this system.", path) from error
    if longest > _MAX_NAME_BYTES or length >= _MAX_PATH_BYTES or "\0" in str(path):
        raise DestinationError(f"{path} cannot be written: the name is too long or invalid.", path)


def _existing_folder(folder: Path) -> Path:
    """Return the folder or its nearest parent that exists. Raises `DestinationError` if that is a file."""
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise DestinationError(f"{folder} is not a folder.", folder)
    return folder


def _check_access(path: Path) -> None:
    """Raise `DestinationError` if a file or folder is read-only. A database needs its folder, too."""
    if not os.access(path, os.W_OK):
        raise DestinationError(f"{path} is read-only. Nothing was changed.", path)


def _check_tables(database: Path, plan: ChangePlan) -> None:
    needed = {row.table for row in plan.rows if row.database == database}
    needed -= {table.name for table in plan.tables if table.database == database}
    with Database(database) as opened:
        missing = sorted(needed - {str(name) for name in opened.read(table_names)})
    if missing:
        raise DatabaseUnreadableError(
            f"{database} has no table {missing[0]}. Nothing was changed.",
            database,
            hint="Start the tool once, close it, and try again.",
        )
