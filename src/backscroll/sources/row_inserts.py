"""Plan to insert the rows and files of restored sessions into a tool's store. Nothing here writes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from backscroll.model.backup import RestoreAction, RestoredFile
from backscroll.model.change import FileChange, RowChange, Value
from backscroll.readers.sqlite import Database, as_bytes, quoted, table_names

_BLOCK_BYTES = 1 << 20


def create_file(copy: Path, target: Path) -> tuple[RestoredFile, FileChange]:
    """Plan to create a file that does not exist."""
    size = copy.stat().st_size
    change = FileChange(path=target, content=partial(file_blocks, copy), before=None, size=size)
    return RestoredFile(str(target), "create", size), change


def file_blocks(path: Path) -> Iterator[bytes]:
    """Yield the content of a file."""
    with path.open("rb") as file:
        yield from iter(lambda: file.read(_BLOCK_BYTES), b"")


def insert_rows(copy: Path, target: Path) -> tuple[RestoredFile, list[RowChange]]:
    """Plan to insert the rows of a database that another one does not have. Existing rows are kept.

    A row exists if its primary key does; in a table without one, if all columns are equal.
    """
    changes: list[RowChange] = []
    with (
        closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True)) as source,
        Database(target) as current,
    ):
        known = set(current.read(table_names))
        for table in table_names(source):
            if table in known:
                changes += _missing_rows(source, current, table, target)
    size = sum(_size(value) for change in changes for value in (change.after or {}).values())
    action: RestoreAction = "insert" if changes else "unchanged"
    return RestoredFile(str(target), action, size, row_count=len(changes)), changes


def _missing_rows(
    source: sqlite3.Connection, current: Database, table: str, target: Path
) -> Iterator[RowChange]:
    info = f"pragma table_info({quoted(table)})"
    known = {_text(row[1]) for row in current.read(lambda db: db.execute(info).fetchall())}
    columns = {str(row[1]): int(row[5]) for row in source.execute(info) if row[1] in known}
    keys = [name for name, position in columns.items() if position] or list(columns)
    if not columns:
        return
    exists = f"select 1 from {quoted(table)} where " + " and ".join(f"{quoted(key)} is ?" for key in keys)  # noqa: S608
    for row in source.execute(f"select {', '.join(map(quoted, columns))} from {quoted(table)}"):  # noqa: S608
        values: dict[str, Value] = dict(zip(columns, row, strict=True))
        key = {name: values[name] for name in keys}
        if current.read(partial(_fetch_one, exists, tuple(key.values()))) is None:
            yield RowChange(database=target, table=table, key=key, before=None, after=values)


def _fetch_one(query: str, parameters: tuple[Value, ...], connection: sqlite3.Connection) -> object:
    return connection.execute(query, parameters).fetchone()


def _text(value: object) -> str:
    return (as_bytes(value) or b"").decode("utf-8", "replace")


def _size(value: Value) -> int:
    return len(value) if isinstance(value, str | bytes) else 8
