"""Rows of a ``store.db``: read them, also from a damaged file, count them, and keep the originals."""

import sqlite3
from binascii import hexlify
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from backscroll.errors import DatabaseLockedError, DatabaseUnreadableError
from backscroll.model.stream import RawRow, RecordCounts
from backscroll.readers import lenient_json
from backscroll.readers.sqlite import Database, as_bytes
from backscroll.sources.cursor_cli.metadata import KNOWN_KEYS, decode_hex_text, is_hex, read_meta
from backscroll.sources.cursor_graph.blobs import (
    MAX_BLOB_BYTES,
    BlobLoader,
    StoredBlob,
    batch_by_size,
    reachable_blobs,
)
from backscroll.sources.cursor_graph.conversation import RecordOutcome
from backscroll.sources.cursor_graph.records import ConversationState
from backscroll.sources.secret_fields import blank, is_secret

_COLUMNS = {"blobs": ("id", "data"), "meta": ("key", "value")}
_VOLATILE_KEYS = ("lastUsedModel", "latestRootBlobId", "mode")
_MAX_META_FILE_BYTES = 1024 * 1024


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


def fetch_blobs(database: Database, ids: Iterable[str], index: StoreIndex) -> dict[str, bytes]:
    """Return the blobs that exist and can be read.

    Raises `DatabaseLockedError`, because a locked store can be read later.
    """
    return {id: stored.data for id, stored in _fetch_stored_blobs(database, ids, index).items()}


def _fetch_stored_blobs(database: Database, ids: Iterable[str], index: StoreIndex) -> dict[str, StoredBlob]:
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
    return _fetch_stored_blobs(database, first, index) | _fetch_stored_blobs(database, second, index)


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


def store_rows(path: Path, root: Path) -> Iterator[RawRow]:
    """Return the metadata and the blobs that the root refers to; without a valid root, all blobs."""
    with Database(path) as database:
        index = database.read(scan_store)
        for raw_key, raw_value in index.meta:
            yield from meta_row((as_bytes(raw_key) or b"").decode("utf-8", "replace"), as_bytes(raw_value))
        yield from file_row(path.with_name("meta.json"), root)

        def fetch(ids: list[str]) -> Iterator[tuple[str, StoredBlob]]:
            for batch in batch_by_size(ids, index.sizes):
                yield from _fetch_stored_blobs(database, batch, index).items()

        for id, blob in reachable_blobs(_start_ids(database, index), fetch):
            yield RawRow(table="blobs", key=id, value=blob.data, is_text=blob.is_text)


def _start_ids(database: Database, index: StoreIndex) -> list[str]:
    root_id = (read_meta(index.meta).text("latestRootBlobId") or "").lower()
    blobs = BlobLoader(lambda ids: fetch_blobs(database, ids, index), sizes=index.sizes)
    data = blobs.get(root_id) if root_id in index.sizes else None
    if data is None or root_id in blobs.altered:
        return list(index.sizes)
    state = ConversationState(data)
    return [root_id] if state.fault is None and not state.is_empty else list(index.sizes)


def meta_row(key: str, value: bytes | None) -> Iterator[RawRow]:
    """Return a row of metadata, unless its key names a secret."""
    if is_secret(key) and key not in KNOWN_KEYS:
        return
    if value is None or key in KNOWN_KEYS:
        yield RawRow(table="meta", key=key, value=value, volatile=("",))
        return
    text = decode_hex_text(value)
    redacted, blanked = _without_secrets(text)
    if blanked and is_hex(value):
        digits = value.strip()
        redacted = hexlify(redacted) + (digits[-1:] if len(digits) % 2 else b"")
    yield RawRow(
        table="meta", key=key, value=redacted if blanked else value, blanked=blanked, volatile=_VOLATILE_KEYS
    )


def file_row(path: Path, root: Path) -> Iterator[RawRow]:
    """Return a ``meta.json``: beside a store, or alone if the session is a draft."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_META_FILE_BYTES)
        name = path.relative_to(root).as_posix()
    except (OSError, ValueError):
        return
    redacted, blanked = _without_secrets(data)
    yield RawRow(path=name, table="", key="", value=redacted, blanked=blanked, volatile=("updatedAtMs",))


def _without_secrets(text: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Blank the fields of an object that may be secrets. Return the object and the names of these fields."""
    redacted, blanked = blank(text)
    if not is_secret(text.decode("utf-8", "replace")):
        return redacted, blanked
    try:
        document = lenient_json.load(redacted)
    except lenient_json.FAILURES:
        return redacted, blanked
    names = [
        name for name, value in _fields(document) if value and is_secret(name) and name not in KNOWN_KEYS
    ]
    if not names:
        return redacted, blanked
    without_names = {name: "" if name in names else value for name, value in document.items()}
    return msgspec.json.encode(without_names), (*blanked, *names)


def _fields(document: Any) -> list[tuple[str, Any]]:
    return list(document.items()) if isinstance(document, dict) else []
