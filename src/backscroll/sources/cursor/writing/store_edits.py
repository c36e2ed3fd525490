"""Collect edits of rows. Every edit keeps the value that it replaces.

Stores of unknown versions are refused: writing to them could make sessions unreadable.
"""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from backscroll.errors import DatabaseUnreadableError, UnknownStoreVersionError
from backscroll.model.change import FileChange, NewTable, RowChange, Value
from backscroll.readers.sqlite import as_bytes
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources.cursor.database import keys
from backscroll.sources.cursor.database.decode import UndecodableError, as_int, decode
from backscroll.sources.cursor.user_data import UserData

_KEY_VALUE_TABLE = "cursorDiskKV"  # Cursor creates it at its start; older stores have only ItemTable
_CREATE_KEY_VALUE_TABLE = "create table cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
_SCHEMA = (
    "create table ItemTable (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)",
    _CREATE_KEY_VALUE_TABLE,
    "pragma user_version = 1",
)
_HEADERS = "composerHeaders"
_MAX_COMPOSER_VERSION = 18
_KNOWN_HEADER_COLUMNS = frozenset(
    {
        "composerId",
        "workspaceId",
        "createdAt",
        "lastUpdatedAt",
        "isArchived",
        "isSubagent",
        "recency",
        "checkpointAt",
        "subagentTypeName",
        "value",
    }
)
_KNOWN_USER_VERSIONS = (0, 1)
Cell = tuple[Path, str, str]  # database, table, key


class Savepoint(NamedTuple):
    """The edits at one time."""

    after: dict[Cell, dict[str, Value] | None]
    labels: dict[Cell, str]
    files: list[FileChange]
    new_databases: dict[Path, tuple[str, ...]]


class StoreEdits:
    """Edits of one user-data folder. Reads see earlier edits."""

    def __init__(self, user_data: UserData) -> None:
        self.user_data = user_data
        self._before: dict[Cell, dict[str, Value] | None] = {}
        self._after: dict[Cell, dict[str, Value] | None] = {}
        self._labels: dict[Cell, str] = {}
        self._files: list[FileChange] = []
        self._new_databases: dict[Path, tuple[str, ...]] = {}  # with statements that create more tables
        self._new_columns: list[str] = []  # of the header table of a new store
        self._edited: set[Cell] = set()  # since the last savepoint

    # Values of ItemTable and cursorDiskKV

    def value(self, database: Path, key: str, table: str = "cursorDiskKV") -> bytes | None:
        """Return a value with all edits so far; None if there is no row or it is empty."""
        row = self._row((database, table, key))
        return as_bytes(row["value"]) if row is not None else None

    def is_text(self, database: Path, key: str, table: str = "cursorDiskKV") -> bool:
        """Return whether a value is stored as text."""
        row = self._row((database, table, key))
        return row is not None and isinstance(row["value"], str)

    def put(
        self,
        database: Path,
        key: str,
        value: bytes | None,
        *,
        table: str = "cursorDiskKV",
        label: str = "row",
        is_text: bool = True,
    ) -> None:
        """Set a value. An existing row keeps its storage class. None deletes the row."""
        cell = (database, table, key)
        row = self._row(cell)
        if row is not None and row["value"] is not None:
            is_text = isinstance(row["value"], str)
        if value is None:
            self._set(cell, None, label)
        elif as_bytes(row["value"]) != value if row is not None else True:
            self._set(cell, {"value": value.decode() if is_text else value}, label)

    def put_empty(self, database: Path, key: str) -> None:
        """Insert a row without a value, as Cursor leaves it of an emptied session, if there is none."""
        cell = (database, _KEY_VALUE_TABLE, key)
        if self._row(cell) is None:
            self._set(cell, {"value": None}, "session")

    # Rows of the header table

    def header_columns(self) -> list[str]:
        """Return the columns of the header table; empty if there is none."""
        if self.user_data.global_path in self._new_databases:
            return self._new_columns
        rows = self._read(self.user_data.global_path, f"pragma table_info({_HEADERS})", [])
        return [_text(row[1]) for row in rows]

    def header(self, session_id: str) -> dict[str, Value] | None:
        """Return the row of a session in the header table."""
        return self._row((self.user_data.global_path, _HEADERS, session_id))

    def put_header(self, session_id: str, columns: dict[str, Value]) -> None:
        """Insert a row of the header table, or change some of its columns."""
        cell = (self.user_data.global_path, _HEADERS, session_id)
        row = self._row(cell)
        self._set(cell, {**(row or {}), **columns}, "list entry")

    # New files

    def add_file(self, change: FileChange) -> None:
        """Create a file. Several sessions may need the same one, such as that of their workspace."""
        if all(file.path != change.path for file in self._files):
            self._files.append(change)

    def create_database(self, path: Path) -> None:
        """Create an empty workspace database."""
        self._new_databases[path] = ()

    def create_store(self, columns: list[str]) -> None:
        """Create the global database, with a header table if ``columns`` are given."""
        self._new_columns = [name for name in columns if name in _KNOWN_HEADER_COLUMNS]
        others = ", ".join(f'"{name}"' for name in self._new_columns if name != "composerId")
        table = f"create table {_HEADERS} (composerId TEXT PRIMARY KEY, {others})"
        self._new_databases[self.user_data.global_path] = (table,) if self._new_columns else ()

    def is_new(self, path: Path) -> bool:
        """Return whether a database is created by these edits."""
        return path in self._new_databases

    # Savepoints

    def savepoint(self) -> Savepoint:
        """Return the edits so far."""
        self._edited = set()
        return Savepoint(dict(self._after), dict(self._labels), list(self._files), dict(self._new_databases))

    def roll_back(self, saved: Savepoint) -> None:
        """Drop the edits since a savepoint."""
        self._after, self._labels, self._files, self._new_databases = saved

    def edited_cells(self) -> frozenset[Cell]:
        """Return the rows that were edited since the last savepoint."""
        return frozenset(self._edited)

    # Result

    def files(self, *, since: Savepoint | None = None) -> tuple[FileChange, ...]:
        """Return the files to create, or only those that were added since a savepoint."""
        known = {} if since is None else since.new_databases
        created = [
            FileChange(
                path=path,
                content=partial(_new_database, statements),
                before=None,
                label="database",
                is_left_if_changed=True,
            )
            for path, statements in sorted(self._new_databases.items())
            if path not in known
        ]
        return (*self._files[len(since.files) if since is not None else 0 :], *created)

    def rows(
        self, cells: Iterable[Cell] | None = None, owners: Mapping[Cell, str] | None = None
    ) -> tuple[RowChange, ...]:
        """Return the changes: rows of sessions first, then lists, those of the global database first.

        ``cells`` are the wanted rows, by default all. ``owners`` are the refs of the sessions of rows.
        """
        changes = []
        for cell in self._after if cells is None else cells:
            database, table, key = cell
            before, after = self._before[cell], self._after[cell]
            if before == after or (before is None and after is None):
                continue
            changes.append(
                RowChange(
                    database=database,
                    table=table,
                    key={"composerId" if table == _HEADERS else "key": key},
                    before=before,
                    after=after,
                    label=self._labels[cell],
                    session=(owners or {}).get(cell, ""),
                )
            )
        order = {_KEY_VALUE_TABLE: 0, _HEADERS: 1, "ItemTable": 2}
        return tuple(
            sorted(
                changes,
                key=lambda row: (
                    row.database != self.user_data.global_path,
                    order[row.table],
                    _family_order(str(next(iter(row.key.values())))),
                ),
            )
        )

    def tables(self, rows: Iterable[RowChange]) -> tuple[NewTable, ...]:
        """Return the tables that rows need and a database does not have."""
        databases = dict.fromkeys(row.database for row in rows if row.table == _KEY_VALUE_TABLE)
        return tuple(
            NewTable(database, _KEY_VALUE_TABLE, _CREATE_KEY_VALUE_TABLE)
            for database in databases
            if database not in self._new_databases
            and not self.user_data.database(database).read(lambda db: keys.has_table(db, _KEY_VALUE_TABLE))
        )

    def _set(self, cell: Cell, after: dict[str, Value] | None, label: str) -> None:
        self._edited.add(cell)
        self._after[cell] = after
        self._labels[cell] = label

    def _row(self, cell: Cell) -> dict[str, Value] | None:
        if cell in self._after:
            return self._after[cell]
        if cell not in self._before:
            self._before[cell] = self._read_row(cell)
        return self._before[cell]

    def _read_row(self, cell: Cell) -> dict[str, Value] | None:
        database, table, key = cell
        if database in self._new_databases:
            return None
        if not self.user_data.database(database).read(lambda db: keys.has_table(db, table)):
            return None
        if table != _HEADERS:
            rows = self._read(database, f"select value, typeof(value) from {table} where key = ?", [key])  # noqa: S608
            return {"value": _typed(rows[0][0], rows[0][1], database)} if rows else None
        columns = self.header_columns()
        selected = ", ".join(f'"{name}", typeof("{name}")' for name in columns)
        rows = self._read(database, f"select {selected} from {table} where composerId = ?", [key])  # noqa: S608
        if not rows:
            return None
        row = rows[0]
        return {
            name: _typed(row[2 * index], row[2 * index + 1], database) for index, name in enumerate(columns)
        }

    def _read(self, database: Path, query: str, parameters: list[str]) -> list[tuple[Any, ...]]:
        return self.user_data.database(database).read(lambda db: db.execute(query, parameters).fetchall())


def _typed(value: Any, kind: Any, database: Path) -> Value:
    """Return a value with the Python type of its storage class."""
    if _text(kind) != "text":
        return value  # type: ignore[no-any-return]
    try:
        return (as_bytes(value) or b"").decode()
    except UnicodeDecodeError as error:
        raise DatabaseUnreadableError(f"{database} contains text that is not UTF-8.", database) from error


def _text(value: Any) -> str:
    return (as_bytes(value) or b"").decode("utf-8", "replace")


def _family_order(key: str) -> int:
    """Return the order in which rows are written: a half-written session stays invisible."""
    if key.startswith("agentKv:blob:"):
        return 0
    return 2 if key.startswith("composerData:") else 1


def _new_database(statements: tuple[str, ...]) -> list[bytes]:
    """Return a new database as bytes."""
    with TempFolder() as folder:
        path = folder / "state.vscdb"
        with closing(sqlite3.connect(path)) as db, db:
            for statement in (*_SCHEMA, *statements):
                db.execute(statement)
        return [path.read_bytes()]


def check_store(user_data: UserData, edits: StoreEdits) -> None:
    """Raise `UnknownStoreVersionError` if the global database has an unknown layout."""
    path = user_data.global_path
    if edits.is_new(path):
        return
    version = user_data.database(path).read(lambda db: db.execute("pragma user_version").fetchone()[0])
    if version not in _KNOWN_USER_VERSIONS:
        raise UnknownStoreVersionError(
            f"{path} has the unknown version {version}. Nothing was changed."
            " Update Backscroll and try again.",
            path,
        )
    columns = edits.header_columns()
    unknown = sorted(set(columns) - _KNOWN_HEADER_COLUMNS)
    if unknown or (columns and not {"composerId", "value"} <= set(columns)):
        names = ", ".join(unknown) or ", ".join(columns)
        raise UnknownStoreVersionError(
            f"The session table of {path} has unknown columns: {names}. Nothing was changed."
            " Update Backscroll and try again.",
            path,
        )


class _Version(Struct, rename={"version": "_v"}):
    version: object = None


def check_composer(user_data: UserData, value: bytes) -> None:
    """Raise `UnknownStoreVersionError` if a session's record is newer than this program knows."""
    path = user_data.global_path
    try:
        version = as_int(decode(value, _Version).version)
    except UndecodableError as error:
        raise UnknownStoreVersionError(
            f"The session's record in {path} {error}. Nothing was changed.", path
        ) from error
    if version is not None and version > _MAX_COMPOSER_VERSION:
        raise UnknownStoreVersionError(
            f"The session's record in {path} has the unknown version {version}. Nothing was changed."
            " Update Backscroll and try again.",
            path,
        )
