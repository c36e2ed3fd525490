"""Compare-and-swap of database rows, one transaction per database."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

from backscroll.errors import (
    ChangeConflictError,
    DatabaseLockedError,
    DatabaseUnreadableError,
    DestinationError,
)
from backscroll.model.change import NewTable, RowChange, Value

MOVE_BACK_HINT = "Run 'backscroll migrate' to move a session back with what was added to it."
_BUSY_TIMEOUT_SECONDS = 2.0
_FILE_HEADER = b"SQLite format 3\0"


def inverse(change: RowChange) -> RowChange:
    """Return the change that restores the row. The change must have all columns of the row before."""
    before = change.after
    if change.before is not None and change.after is not None:
        before = {**change.before, **change.after}
    return RowChange(
        database=change.database,
        table=change.table,
        key=change.key,
        before=before,
        after=change.before,
        label=change.label,
        session=change.session,
    )


def by_database(rows: Sequence[RowChange]) -> dict[Path, list[RowChange]]:
    """Group changes by database, in the order of their first change."""
    grouped: dict[Path, list[RowChange]] = {}
    for row in rows:
        grouped.setdefault(row.database, []).append(row)
    return grouped


def write_rows(database: Path, rows: Sequence[RowChange], tables: Sequence[NewTable] = ()) -> None:
    """Create tables and write changes in one transaction.

    Raises `ChangeConflictError` if a row is not as expected, or a new table exists.
    """
    with _connection(database) as db, _transaction(db):
        for table in tables:
            if _has_table(db, table.name):
                raise ChangeConflictError(
                    f"{database} has the table {table.name} meanwhile. Nothing was changed.", database
                )
            db.execute(table.statement)
        for row in rows:
            if not _is_same(_read(db, row), row.before):
                raise ChangeConflictError(
                    f"{_name(row)} in {database} is not as expected. Nothing was changed.", database
                )
            _write(db, row)


def revert_rows(
    database: Path, rows: Sequence[RowChange], tables: Sequence[NewTable] = (), *, is_committed: bool
) -> int:
    """Restore the rows that have their new values, in one transaction. Other rows are left as they are.

    Without ``is_committed``, nothing is restored unless all rows have their new values. A row whose table
    does not exist was never written. ``tables`` are dropped if they are empty. Return the number of rows that
    have neither their old nor their new values.
    """
    inverses = [inverse(row) for row in reversed(rows)]
    with _connection(database) as db:
        is_written = [_is_same(_read(db, row), row.before) for row in inverses]
        if not is_committed and not all(is_written):
            return 0
        created = [table for table in tables if _has_table(db, table.name)]
        if any(is_written) or created:
            with _transaction(db):
                for row in inverses:
                    if _is_same(_read(db, row), row.before):
                        _write(db, row)
                for table in created:
                    if not _has_rows(db, table.name):
                        db.execute(f"drop table {_quoted(table.name)}")
        return sum(not _is_same(_read(db, row), row.after) for row in inverses)


def check_rows(database: Path, rows: Sequence[RowChange]) -> None:
    """Raise `ChangeConflictError` if a row has neither its old nor its new values."""
    with _connection(database) as db:
        for row in map(inverse, rows):
            current = _read(db, row)
            if not _is_same(current, row.before) and not _is_same(current, row.after):
                raise ChangeConflictError(
                    f"{_name(row)} in {database} has changed since. Undo would lose that change.",
                    database,
                    hint=MOVE_BACK_HINT,
                )


def content_hash(database: Path) -> str | None:
    """Return the SHA-256 of the schema and all rows of a database; None if the file is not a database."""
    try:
        with database.open("rb") as file:
            if file.read(len(_FILE_HEADER)) != _FILE_HEADER:
                return None
        with _connection(database) as db:
            return sha256("\n".join(db.iterdump()).encode("utf-8", "surrogatepass")).hexdigest()
    except (OSError, DatabaseUnreadableError):
        return None


def size_of(columns: Mapping[str, Value] | None) -> int:
    """Return about how many bytes the columns of a row need."""
    return sum(len(value) for value in (columns or {}).values() if isinstance(value, str | bytes))


def _read(db: sqlite3.Connection, row: RowChange) -> dict[str, Value] | None:
    """Return the columns of the current row that the change names; None if there is no row or table."""
    if not _has_table(db, row.table):
        return None
    columns = list({**row.key, **(row.before or {}), **(row.after or {})})
    selected = ", ".join(map(_quoted, columns))
    found = db.execute(
        f"select {selected} from {_quoted(row.table)} where {_where(row.key)}",  # noqa: S608
        [*row.key.values()],
    ).fetchone()
    return dict(zip(columns, found, strict=True)) if found is not None else None


def _has_table(db: sqlite3.Connection, name: str) -> bool:
    query = "select 1 from sqlite_master where type = 'table' and name = ?"
    return db.execute(query, [name]).fetchone() is not None


def _has_rows(db: sqlite3.Connection, table: str) -> bool:
    return db.execute(f"select 1 from {_quoted(table)} limit 1").fetchone() is not None  # noqa: S608


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("begin immediate")
    try:
        yield
        db.execute("commit")
    except BaseException:
        if db.in_transaction:  # a full disk has ended it already
            db.execute("rollback")
        raise
    db.execute("pragma wal_checkpoint(passive)")


@contextmanager
def _connection(database: Path) -> Iterator[sqlite3.Connection]:
    try:
        uri = f"{database.absolute().as_uri()}?mode=rw"
        with closing(
            sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_SECONDS, isolation_level=None)
        ) as db:
            yield db
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise DatabaseLockedError(
                f"{database} is locked by another process. Close the tool and try again.", database
            ) from error
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:
            raise DestinationError(
                f"{database} cannot be written: the disk is full. Nothing was changed."
                " Free some space and try again.",
                database,
            ) from error
        raise DatabaseUnreadableError(f"{database} cannot be written: {error}.", database) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise DatabaseUnreadableError(f"{database} cannot be written: {error}.", database) from error


def _write(db: sqlite3.Connection, row: RowChange) -> None:
    table = _quoted(row.table)
    if row.after is None:
        db.execute(f"delete from {table} where {_where(row.key)}", [*row.key.values()])  # noqa: S608
        return
    if row.before is not None:
        # A new row id, as the tool itself gives a row that it writes again. Readers recognize changes by it.
        db.execute(f"delete from {table} where {_where(row.key)}", [*row.key.values()])  # noqa: S608
    values = {**row.key, **(row.before or {}), **row.after}
    columns = ", ".join(map(_quoted, values))
    marks = ", ".join("?" for _ in values)
    db.execute(f"insert into {table} ({columns}) values ({marks})", [*values.values()])  # noqa: S608


def _is_same(current: Mapping[str, Value] | None, expected: Mapping[str, Value] | None) -> bool:
    if current is None or expected is None:
        return current is None and expected is None
    return all(
        current.get(column) == value and type(current.get(column)) is type(value)
        for column, value in expected.items()
    )


def _where(key: Mapping[str, Value]) -> str:
    return " and ".join(f"{_quoted(column)} is ?" for column in key)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _name(row: RowChange) -> str:
    return f"{row.table} row {next(iter(row.key.values()))!r}"
