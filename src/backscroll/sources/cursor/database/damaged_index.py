"""Copy of a table's keys, read from the table itself because its index is damaged."""

import sqlite3
from sqlite3 import Connection
from typing import Literal, NamedTuple

from backscroll.sources.cursor.database.keys import has_table, is_damage

__all__ = ["copy_keys"]

_Row = tuple[int, bytes | None, int]


class _Scan(NamedTuple):
    rows: list[_Row]
    fault: sqlite3.DatabaseError | None


def copy_keys(connection: Connection) -> Connection:
    """Return an in-memory database with the same table, keys and rowids, but without values.

    If the table is damaged too, the copy has the rows before the first damaged page and after the last one.
    Raises the error of SQLite if no row can be read.
    """
    if not has_table(connection, "cursorDiskKV"):
        return _build_copy([])
    found = _scan(connection, "asc")
    if found.fault is None:
        return _build_copy(found.rows)
    rest = _scan(connection, "desc")
    if not found.rows and not rest.rows:
        raise found.fault
    return _build_copy([*found.rows, *rest.rows])


def _scan(connection: Connection, direction: Literal["asc", "desc"]) -> _Scan:
    rows: list[_Row] = []
    try:
        rows.extend(
            connection.execute(
                f"select rowid, key, typeof(key) = 'blob' from cursorDiskKV not indexed order by rowid {direction}"  # noqa: S608, E501 - asc or desc
            )
        )
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return _Scan(rows, error)
    return _Scan(rows, None)


def _build_copy(rows: list[_Row]) -> Connection:
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    copy.text_factory = bytes
    copy.execute("create table cursorDiskKV (key text unique on conflict replace, value blob)")
    copy.execute("begin")
    copy.executemany(
        "insert or replace into cursorDiskKV (rowid, key) values (?1, iif(?3, ?2, cast(?2 as text)))", rows
    )
    copy.execute("commit")
    return copy
