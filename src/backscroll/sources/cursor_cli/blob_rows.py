"""Read the rows of a ``store.db``, also from a damaged file, and count them."""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from backscroll.errors import DatabaseLockedError, DatabaseUnreadableError
from backscroll.model import RecordCounts
from backscroll.readers.sqlite.connection import Database, as_bytes
from backscroll.sources.cursor_graph.blobs import MAX_BLOB_BYTES
from backscroll.sources.cursor_graph.conversation import RecordOutcome
from backscroll.sources.cursor_graph.reachable import StoredBlob

__all__ = ["StoreIndex", "count_blobs", "fetch_blobs", "fetch_stored_blobs", "scan_store"]

_COLUMNS = {"blobs": ("id", "data"), "meta": ("key", "value")}


class StoreIndex(Struct, frozen=True):
    """Content of a store without its blobs: tables, metadata, and ids and sizes of the blobs."""

    missing_tables: tuple[str, ...]
    changed_tables: tuple[str, ...]  # without the expected columns
    unknown_tables: tuple[str, ...]
    meta: list[tuple[Any, Any]]
    sizes: dict[str, int]  # in bytes, by blob id
    binary_keys: dict[str, bytes]  # stored key by blob id, if it is not text
    empty_count: int = 0  # blobs without an id or without content
    no_unique_id_count: int = 0  # blobs with an invalid id or the id of another blob
    too_large: tuple[str, ...] = ()  # ids of blobs that are not read
    changed_row_count: int = 0  # rows of changed tables
    is_damaged: bool = False  # part of the file is damaged, and rows may be missing


class _DamageTolerantReader:
    """Reads the rows around damaged pages, and records whether there was damage."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.is_damaged = False

    def rows(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        """Return all rows that can be read: up to the first damaged page, and after the last one."""
        forwards, is_complete = self._until_damage(f"select {columns} from {table}")  # noqa: S608 - our own names
        if is_complete:
            return forwards
        self.is_damaged = True
        # A view or a table without rowids has no order to read backwards; then this returns nothing.
        backwards, _ = self._until_damage(f"select {columns} from {table} order by rowid desc")  # noqa: S608
        return list(dict.fromkeys([*forwards, *reversed(backwards)]))

    def _until_damage(self, query: str) -> tuple[list[tuple[Any, ...]], bool]:
        found: list[tuple[Any, ...]] = []
        try:
            for row in self._db.execute(query):
                found.append(row)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in (
                sqlite3.SQLITE_CORRUPT,
                sqlite3.SQLITE_ERROR,
            ):
                raise
            return found, False
        return found, True


def scan_store(db: sqlite3.Connection) -> StoreIndex:
    """Read everything except the content of the blobs."""
    query = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
    tables = [(as_bytes(name) or b"").decode("utf-8", "replace") for (name,) in db.execute(query)]
    usable = [name for name in _COLUMNS if name in tables and _has_columns(db, name)]
    reader = _DamageTolerantReader(db)
    meta = reader.rows("meta", "key, value") if "meta" in usable else []
    blobs = reader.rows("blobs", "id, typeof(id), length(data)") if "blobs" in usable else []
    changed_tables = tuple(name for name in _COLUMNS if name in tables and name not in usable)
    changed_row_count = sum(_count_rows(db, name) for name in changed_tables)
    sizes: dict[str, int] = {}
    binary_keys: dict[str, bytes] = {}
    too_large: list[str] = []
    empty_count = no_unique_id_count = 0
    for raw_id, column_type, size in blobs:
        if raw_id is None or size is None:
            empty_count += 1
            continue
        id = _decode_id(raw_id, column_type)
        if id is None or id in sizes or id in too_large:
            no_unique_id_count += 1
        elif size > MAX_BLOB_BYTES:
            too_large.append(id)
        else:
            sizes[id] = size
            if column_type == b"blob":
                binary_keys[id] = raw_id
    return StoreIndex(
        missing_tables=tuple(name for name in _COLUMNS if name not in tables),
        changed_tables=changed_tables,
        unknown_tables=tuple(name for name in tables if name not in _COLUMNS),
        meta=[(key, value) for key, value in meta],
        sizes=sizes,
        binary_keys=binary_keys,
        empty_count=empty_count,
        no_unique_id_count=no_unique_id_count,
        too_large=tuple(too_large),
        changed_row_count=changed_row_count,
        is_damaged=reader.is_damaged,
    )


def _has_columns(db: sqlite3.Connection, table: str) -> bool:
    columns = {as_bytes(row[1]) for row in db.execute(f"pragma table_info({table})")}
    return columns.issuperset(name.encode() for name in _COLUMNS[table])


def _count_rows(db: sqlite3.Connection, table: str) -> int:
    count: int = db.execute(f"select count(*) from {table}").fetchone()[0]  # noqa: S608 - one of two names
    return count


def _decode_id(raw: Any, column_type: bytes) -> str | None:
    """Return a blob id as hex digits or text; None if it is neither."""
    data = as_bytes(raw) or b""
    if column_type == b"blob" and len(data) == 32:
        return data.hex()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def fetch_blobs(database: Database, ids: Iterable[str], index: StoreIndex) -> dict[str, bytes]:
    """Return the blobs that exist and can be read.

    Raises `DatabaseLockedError`, because a locked store can be read later.
    """
    return {id: stored.data for id, stored in fetch_stored_blobs(database, ids, index).items()}


def fetch_stored_blobs(database: Database, ids: Iterable[str], index: StoreIndex) -> dict[str, StoredBlob]:
    """Like `fetch_blobs`, with the type of each column."""
    present = [id for id in ids if id in index.sizes]
    try:
        return database.read(lambda db: _select_blobs(db, present, index))
    except DatabaseLockedError:
        raise
    except DatabaseUnreadableError:
        if len(present) <= 1:
            return {}
    # Only the blobs on a damaged page are lost: bisect to read the others.
    half = len(present) // 2
    first, second = present[:half], present[half:]
    return fetch_stored_blobs(database, first, index) | fetch_stored_blobs(database, second, index)


def _select_blobs(db: sqlite3.Connection, ids: Iterable[str], index: StoreIndex) -> dict[str, StoredBlob]:
    found: dict[str, StoredBlob] = {}
    query = "select data, typeof(data) = 'text' from blobs where id = ?"
    for id in ids:
        row = db.execute(query, [index.binary_keys.get(id, id)]).fetchone()
        data = as_bytes(row[0]) if row else None
        if data is not None:
            found[id] = StoredBlob(data, bool(row[1]))
    return found


def count_blobs(
    index: StoreIndex, outcomes: Mapping[str, tuple[str, RecordOutcome]], counts: RecordCounts
) -> None:
    """Count every blob once, by its outcome. A blob without one belongs to an older state."""
    for id in index.sizes:
        kind, outcome = outcomes.get(id, ("blob (older state)", "ignored"))
        counts.count(kind, outcome)
    for id in index.too_large:
        kind, _ = outcomes.get(id, ("blob (too large)", "problems"))
        counts.count(kind, "problems")
    for kind, count in (
        ("blob (no unique id)", index.no_unique_id_count),
        ("row (unknown columns)", index.changed_row_count),
    ):
        if count:
            counts.count(kind, "problems", count)
    if index.empty_count:
        counts.count("blob (empty)", "ignored", index.empty_count)
