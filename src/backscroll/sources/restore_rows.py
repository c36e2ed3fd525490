"""Write archived rows to databases and files in the layout of the tools."""

import os
import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import Raw

from backscroll.errors import DestinationError
from backscroll.model.stream import RawRow
from backscroll.sources.protocols import DatabaseSchema

_VIRTUAL_TABLE = re.compile(r"using \w+\((.*)\)")


class RowRestorer:
    """Writer of archived rows below one folder. A context manager; it never overwrites a file.

    Raises `DestinationError` if a file exists or cannot be written.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._connections: dict[str, sqlite3.Connection] = {}
        self._written_files: dict[str, float | None] = {}  # with their modification times, if known
        self._parts: dict[tuple[str, str], dict[str, bytes]] = {}  # of shared values, by file and key
        self._shared: dict[tuple[str, str], tuple[str, DatabaseSchema]] = {}  # their tables

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for db in self._connections.values():
            db.close()
        self._connections.clear()

    def add(
        self, file: str, rows: Iterable[RawRow], schema: DatabaseSchema, modified_at: float | None = None
    ) -> tuple[int, set[str]]:
        """Write the rows of one unit. ``file`` is the default for rows without a path.

        Return the number of rows, and the names of the fields that were blanked.
        """
        row_count = 0
        blanked: set[str] = set()
        try:
            for row in rows:
                self._add(row.path or file, row, schema)
                row_count += 1
                blanked.update(row.blanked)
        except (OSError, sqlite3.Error) as error:
            raise DestinationError(
                f"{self._root / file} could not be written: {error}", self._root
            ) from error
        if file in self._written_files:
            previous = self._written_files[file]
            self._written_files[file] = (
                max(previous or 0, modified_at) if modified_at is not None else previous
            )
        return row_count, blanked

    def finish(self) -> list[Path]:
        """Write the values that several sessions share, and close all databases. Return the sorted files."""
        try:
            for (file, key), parts in self._parts.items():
                table, schema = self._shared[file, key]
                self._insert(file, table, key, _assemble_parts(parts), schema, is_text=True)
            for db in self._connections.values():
                db.execute("commit")
                db.close()
            self._connections.clear()
            for name, modified_at in self._written_files.items():
                if modified_at is not None:
                    os.utime(self._root / name, (modified_at, modified_at))
        except (OSError, sqlite3.Error) as error:
            raise DestinationError(f"{self._root} could not be written: {error}", self._root) from error
        return [self._root / name for name in sorted(self._written_files)]

    def _add(self, file: str, row: RawRow, schema: DatabaseSchema) -> None:
        if not row.table:
            self._write_file(file, row.value or b"")
        elif row.part:
            self._database(file, schema)
            self._shared[file, row.key] = row.table, schema
            self._parts.setdefault((file, row.key), {}).setdefault(row.part, row.value or b"null")
        elif row.table in schema.values:
            self._insert(file, row.table, row.key, row.value, schema, is_text=row.is_text)
        else:
            self._insert_columns(file, row.table, msgspec.json.decode(row.value or b"{}"), schema)

    def _path(self, file: str) -> Path:
        path = self._root / file
        if not path.resolve().is_relative_to(self._root.resolve()):
            raise DestinationError(f"{path} is not below {self._root}", path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _write_file(self, file: str, data: bytes) -> None:
        if file in self._written_files:
            return  # shared by several sessions
        path = self._path(file)
        try:
            with path.open("xb") as opened:
                opened.write(data)
        except FileExistsError as error:
            raise DestinationError(f"{path} exists; name another folder", path) from error
        self._written_files[file] = None

    def _database(self, file: str, schema: DatabaseSchema) -> sqlite3.Connection:
        db = self._connections.get(file)
        if db is None:
            path = self._path(file)
            if path.exists():
                raise DestinationError(f"{path} exists; name another folder", path)
            db = self._connections[file] = sqlite3.connect(path, isolation_level=None)
            self._written_files[file] = None
            db.execute("pragma journal_mode = off")
            db.execute("pragma synchronous = off")
            db.execute("begin")
            for statement in schema.databases.get(path.name, ()):
                db.execute(statement)
        return db

    def _insert(
        self, file: str, table: str, key: str, value: bytes | None, schema: DatabaseSchema, *, is_text: bool
    ) -> None:
        key_column, value_column = schema.values[table]
        placeholder = "cast(? as text)" if is_text and value is not None else "?"
        self._database(file, schema).execute(
            f"insert or replace into {table} ({key_column}, {value_column}) values (?, {placeholder})",  # noqa: S608 - our own names
            [key, value],
        )

    def _insert_columns(self, file: str, table: str, columns: dict[str, Any], schema: DatabaseSchema) -> None:
        """Insert a row of a table with any columns. Missing columns are added to the table."""
        db = self._database(file, schema)
        known = [row[1] for row in db.execute(f"pragma table_info({_quote(table)})")]
        if not known:
            _create_table(db, table, schema.tables.get(table, "id"))
            known = [row[1] for row in db.execute(f"pragma table_info({_quote(table)})")]
        for name in columns:
            if name not in known and name != "rowid":
                db.execute(f"alter table {_quote(table)} add column {_quote(name)}")
        names = ", ".join(_quote(name) for name in columns)
        placeholders = ", ".join("?" * len(columns))
        db.execute(
            f"insert or replace into {_quote(table)} ({names}) values ({placeholders})",  # noqa: S608 - quoted
            list(columns.values()),
        )


def _create_table(db: sqlite3.Connection, table: str, definition: str) -> None:
    """Create a table. ``definition`` is its first column, or the module and columns of a virtual table."""
    virtual = _VIRTUAL_TABLE.match(definition)
    if virtual is None:
        db.execute(f"create table {_quote(table)} ({definition})")
        return
    try:
        db.execute(f"create virtual table {_quote(table)} {definition}")
    except sqlite3.OperationalError:  # no FTS5: queries on a plain table give the same rows
        db.execute(f"create table {_quote(table)} ({virtual[1]})")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _assemble_parts(parts: dict[str, bytes]) -> bytes:
    """Join parts to a JSON value. The part ``field[]/id`` is an item of a list, ``field`` is a value."""
    fields: dict[str, Any] = {}
    for part, value in parts.items():
        field, is_listed, _ = part.partition("[]/")
        if is_listed:
            fields.setdefault(field, []).append(Raw(value))
        else:
            fields[part] = Raw(value)
    return msgspec.json.encode(fields[""] if list(fields) == [""] else fields)
