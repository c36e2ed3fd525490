"""The rows of a ``store.db``, and the account of what each of them gave."""

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from backscroll.errors import DatabaseLockedError, DatabaseUnreadableError
from backscroll.model import RecordCounts
from backscroll.readers.sqlite import Database, as_bytes
from backscroll.sources.cursor_graph import RecordOutcome
from backscroll.sources.cursor_graph.blobs import MAX_BLOB_BYTES
from backscroll.sources.cursor_graph.reachable import StoredBlob

__all__ = ["StoreIndex", "count_blobs", "fetch_blobs", "fetch_stored_blobs", "scan_store"]

_COLUMNS = {"blobs": ("id", "data"), "meta": ("key", "value")}


class StoreIndex(Struct, frozen=True):
    """What is in a store: its metadata, and its blobs by id and size."""

    absent: tuple[str, ...]  # tables that are not there
    changed: tuple[str, ...]  # tables without the columns that are known
    strange: tuple[str, ...]  # tables that nobody here knows
    meta: list[tuple[Any, Any]]
    sizes: dict[str, int]
    keys: dict[str, bytes]  # what to ask for where an id is not kept as text
    empty: int = 0  # blobs without an id or without content
    nameless: int = 0  # rows whose id says nothing, or what another row's says
    large: tuple[str, ...] = ()  # blobs too large to be read
    foreign: int = 0  # rows of changed tables
    is_torn: bool = False  # part of the file is damaged, and rows may be missing


class _DamageTolerantReader:
    """Goes through rows and remembers whether damage hid some of them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.is_torn = False

    def rows(self, table: str, columns: str) -> list[tuple[Any, ...]]:
        """All rows; around a damaged page, those before it and those after it."""
        forwards, is_whole = self._until_damage(f"select {columns} from {table}")  # noqa: S608 - our own names
        if is_whole:
            return forwards
        self.is_torn = True
        # Backwards by the table's own order, which a view or a table without one does not have.
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
    """Everything but the blobs' content."""
    named = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
    tables = [(as_bytes(name) or b"").decode("utf-8", "replace") for (name,) in db.execute(named)]
    usable = [name for name in _COLUMNS if name in tables and _has_columns(db, name)]
    torn = _DamageTolerantReader(db)
    meta = torn.rows("meta", "key, value") if "meta" in usable else []
    blobs = torn.rows("blobs", "id, typeof(id), length(data)") if "blobs" in usable else []
    foreign = sum(_count(db, name) for name in _COLUMNS if name in tables and name not in usable)
    sizes: dict[str, int] = {}
    keys: dict[str, bytes] = {}
    large: list[str] = []
    empty = nameless = 0
    for raw_id, kind, size in blobs:
        if raw_id is None or size is None:
            empty += 1
            continue
        id = _id(raw_id, kind)
        if id is None or id in sizes or id in large:
            nameless += 1
        elif size > MAX_BLOB_BYTES:
            large.append(id)
        else:
            sizes[id] = size
            if kind == b"blob":
                keys[id] = raw_id
    return StoreIndex(
        tuple(name for name in _COLUMNS if name not in tables),
        tuple(name for name in _COLUMNS if name in tables and name not in usable),
        tuple(name for name in tables if name not in _COLUMNS),
        [(key, value) for key, value in meta],
        sizes,
        keys,
        empty,
        nameless,
        tuple(large),
        foreign,
        torn.is_torn,
    )


def _has_columns(db: sqlite3.Connection, table: str) -> bool:
    there = {as_bytes(row[1]) for row in db.execute(f"pragma table_info({table})")}
    return there.issuperset(name.encode() for name in _COLUMNS[table])


def _count(db: sqlite3.Connection, table: str) -> int:
    found: int = db.execute(f"select count(*) from {table}").fetchone()[0]  # noqa: S608 - one of two names
    return found


def _id(raw: Any, kind: bytes) -> str | None:
    """A blob's id as roots name it; None when it is no text."""
    data = as_bytes(raw) or b""
    if kind == b"blob" and len(data) == 32:
        return data.hex()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def fetch_blobs(database: Database, ids: Iterable[str], rows: StoreIndex) -> dict[str, bytes]:
    """Those blobs that are there and can be read. Raises `DatabaseLockedError`, since they may be later."""
    return {id: stored.data for id, stored in fetch_stored_blobs(database, ids, rows).items()}


def fetch_stored_blobs(database: Database, ids: Iterable[str], rows: StoreIndex) -> dict[str, StoredBlob]:
    """The same, with how each is stored."""
    asked = [id for id in ids if id in rows.sizes]
    try:
        return database.read(lambda db: _select_blobs(db, asked, rows))
    except DatabaseLockedError:
        raise
    except DatabaseUnreadableError:
        if len(asked) <= 1:
            return {}
    # A damaged page hides the blobs on it, and no others.
    half = len(asked) // 2
    return fetch_stored_blobs(database, asked[:half], rows) | fetch_stored_blobs(database, asked[half:], rows)


def _select_blobs(db: sqlite3.Connection, ids: Iterable[str], rows: StoreIndex) -> dict[str, StoredBlob]:
    found: dict[str, StoredBlob] = {}
    query = "select data, typeof(data) = 'text' from blobs where id = ?"
    for id in ids:
        row = db.execute(query, [rows.keys.get(id, id)]).fetchone()
        data = as_bytes(row[0]) if row else None
        if data is not None:
            found[id] = StoredBlob(data, bool(row[1]))
    return found


def count_blobs(
    rows: StoreIndex, verdicts: Mapping[str, tuple[str, RecordOutcome]], tally: RecordCounts
) -> None:
    """Count every blob once: by what it gave, or as part of a state that the session has left behind."""
    for id in rows.sizes:
        kind, verdict = verdicts.get(id, ("blob (older state)", "ignored"))
        tally.count(kind, verdict)
    for id in rows.large:
        kind, _ = verdicts.get(id, ("blob (too large)", "problems"))
        tally.count(kind, "problems")
    for kind, number in (
        ("blob (without a name of its own)", rows.nameless),
        ("other columns", rows.foreign),
    ):
        if number:
            tally.count(kind, "problems", number)
    if rows.empty:
        tally.count("blob (empty)", "ignored", rows.empty)
