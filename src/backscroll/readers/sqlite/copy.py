"""Copy the schema and some rows of a database to an empty one, with all storage classes."""

import re
from collections.abc import Sequence
from sqlite3 import Connection

__all__ = ["copy_rows", "copy_schema", "quoted", "table_names"]

_PRAGMAS = ("user_version", "application_id")
_VIRTUAL_TABLE = re.compile(rb"\s*create\s+virtual\s+table", re.IGNORECASE)
_BATCH_ROWS = 200


def copy_schema(source: Connection, target: Connection) -> None:
    """Create the tables, indexes, views and triggers of a database, without rows.

    The source returns text as bytes. Shadow tables are created with their virtual table.
    """
    (page_size,) = source.execute("pragma page_size").fetchone()
    target.execute(f"pragma page_size = {page_size}")
    for name in _PRAGMAS:
        (value,) = source.execute(f"pragma {name}").fetchone()
        target.execute(f"pragma {name} = {value}")
    virtual = _virtual_tables(source)
    rows = source.execute(
        "select name, sql from sqlite_master where sql is not null"
        " order by type = 'trigger', type = 'view', type = 'index', rowid"
    ).fetchall()
    for name, sql in rows:
        if not _is_internal(_text(name), virtual):
            target.execute(_text(sql))


def table_names(connection: Connection) -> list[str]:
    """Return the names of all tables, without shadow tables."""
    virtual = _virtual_tables(connection)
    rows = connection.execute("select name from sqlite_master where type = 'table' order by rowid").fetchall()
    return [name for (raw,) in rows if not _is_internal(name := _text(raw), virtual)]


def copy_rows(
    source: Connection, target: Connection, table: str, condition: str, parameters: Sequence[object] = ()
) -> int:
    """Copy the rows of a table that meet a condition, with their rowids. Return their number."""
    name = quoted(table)
    columns = [_text(row[1]) for row in source.execute(f"pragma table_info({name})").fetchall()]
    names = ", ".join(map(quoted, columns))
    selected = ", ".join(f"{column}, typeof({column}) = 'text'" for column in map(quoted, columns))
    marks = ", ".join(["iif(?, cast(? as text), ?)"] * len(columns))
    has_rowid = _has_rowid(source, name)
    if has_rowid:
        names, selected, marks = f"rowid, {names}", f"rowid, {selected}", f"?, {marks}"
    cursor = source.execute(f"select {selected} from {name} where {condition}", parameters)  # noqa: S608
    insert = f"insert into {name} ({names}) values ({marks})"  # noqa: S608 - quoted
    count = 0
    while rows := cursor.fetchmany(_BATCH_ROWS):
        target.executemany(insert, [_values(row, has_rowid=has_rowid) for row in rows])
        count += len(rows)
    return count


def quoted(name: str) -> str:
    """Return an identifier in quotes."""
    return '"' + name.replace('"', '""') + '"'


def _values(row: tuple[object, ...], *, has_rowid: bool) -> list[object]:
    values: list[object] = [row[0]] if has_rowid else []
    for index in range(int(has_rowid), len(row), 2):
        values += (row[index + 1], row[index], row[index])
    return values


def _has_rowid(connection: Connection, name: str) -> bool:
    query = "select 1 from sqlite_master where type = 'table' and name = ? and sql like '%without rowid%'"
    return connection.execute(query, [name[1:-1].replace('""', '"')]).fetchone() is None


def _virtual_tables(connection: Connection) -> list[str]:
    rows = connection.execute("select name, sql from sqlite_master where type = 'table'").fetchall()
    return [_text(name) for name, sql in rows if sql is not None and _VIRTUAL_TABLE.match(_bytes(sql))]


def _is_internal(name: str, virtual: Sequence[str]) -> bool:
    return name.startswith("sqlite_") or any(name.startswith(f"{table}_") for table in virtual)


def _bytes(value: bytes | str) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
