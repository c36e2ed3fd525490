"""Rows of the tools' databases, stored so that a session can be restored.

The newest version of each row is stored, and older versions that contain something a later one lost. Rows
that vanish from the database stay.
"""

import sqlite3
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from backscroll.archive.storage.codec import decompress
from backscroll.errors import ArchiveError, BackscrollError, DatabaseLockedError
from backscroll.model.stream import RawRow

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_RowKey = tuple[str, str, str, str]  # path, table, key, part
_INSERT_BATCH_SIZE = 500
_HASH_BYTES = 16
_CHUNK_BYTES = 2 * 1024 * 1024  # large, because equal answers and files are in rows that are far apart
# As fast as level 1, with a window as large as a chunk.
_COMPRESSION: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.window_log: _CHUNK_BYTES.bit_length() - 1,
    zstd.CompressionParameter.hash_log: 16,
}
_INSERT = (
    "insert into raw_row (unit_id, path, table_name, key, part, version, is_text, is_shared, removed_fields,"
    " content_hash, blob_chunk_id, offset, size) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SELECT = (
    "select path, table_name, key, part, id, version, content_hash, is_gone, is_text, removed_fields,"
    " blob_chunk_id, offset, size from raw_row where unit_id = ? order by version"
)
_PARSE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError)
_JSON_STARTS = ("{", "[")


class BlobRef(NamedTuple):
    """Location of a value."""

    chunk_id: int
    offset: int
    size: int


class _Version(Struct):
    """One stored version of a row."""

    id: int
    version: int
    content_hash: bytes | None
    is_gone: bool
    is_text: bool
    removed_fields: str | None
    ref: BlobRef | None


def store_rows(db: sqlite3.Connection, unit_id: int, rows: Iterable[RawRow], *, is_new: bool = False) -> bool:
    """Store the changed rows of a unit and mark the missing ones as gone. A new unit has no stored rows.

    Return False if the database is locked and the rows have to be read again. After any other read error, no
    row is marked as gone.
    """
    writer = _RowWriter(db, unit_id, {} if is_new else dict(_versions(db, unit_id)))
    is_complete = is_unlocked = True
    try:
        for row in rows:
            writer.store(row)
    except (
        BackscrollError,
        sqlite3.OperationalError,
    ) as error:  # of the source; a full disk fails again below
        is_complete, is_unlocked = False, not isinstance(error, DatabaseLockedError)
    writer.flush()
    if is_complete:
        writer.mark_gone()
    return is_unlocked


class _RowWriter:
    """Store the rows of one unit."""

    def __init__(self, db: sqlite3.Connection, unit_id: int, stored: dict[_RowKey, _Version]) -> None:
        self._db = db
        self._unit_id = unit_id
        self._unseen = stored  # newest version of each row; a row is removed when it is stored again
        self._blobs = BlobStore(db)
        self._pending: list[tuple[object, ...]] = []
        self._freed_chunks: set[int] = set()

    def store(self, row: RawRow) -> None:
        digest = content_hash(row.value) if row.value is not None else None
        known = self._unseen.pop((row.path, row.table, row.key, row.part), None) if self._unseen else None
        if known is None:
            self._insert(row, 1, digest)
            return
        if known.is_gone:
            self._set_gone([known], is_gone=False)
        if known.content_hash == digest:
            return
        if self._is_replaceable(known, row):
            self._db.execute("delete from raw_row where id = ?", [known.id])
            if known.ref is not None:
                self._freed_chunks.add(known.ref.chunk_id)
        if not self._reuse_version(row, known.version + 1, digest):
            self._insert(row, known.version + 1, digest)

    def _reuse_version(self, row: RawRow, version: int, digest: bytes | None) -> bool:
        """Make an older version with the same content the newest one. Return whether there is one."""
        return bool(
            self._db.execute(
                "update raw_row set version = ?, is_gone = 0 where unit_id = ? and content_hash is ?"
                " and key = ? and path = ? and table_name = ? and part = ?",
                [version, self._unit_id, digest, row.key, row.path, row.table, row.part],
            ).rowcount
        )

    def _is_replaceable(self, known: _Version, row: RawRow) -> bool:
        """Return whether the row contains everything of its stored version."""
        if known.ref is None:
            return True
        return row.value is not None and is_superset(row.value, self._blobs.get(known.ref), row.volatile)

    def _insert(self, row: RawRow, version: int, digest: bytes | None) -> None:
        ref: tuple[int | None, int | None, int | None] = (None, None, None)
        if row.value is not None:
            ref = (self._find_shared(digest) if row.is_shared else None) or self._blobs.add(row.value)
        removed_fields = msgspec.json.encode(row.blanked).decode() if row.blanked else None
        self._pending.append(
            (
                self._unit_id,
                row.path,
                row.table,
                row.key,
                row.part,
                version,
                row.is_text,
                row.is_shared,
                removed_fields,
                digest,
                *ref,
            )
        )
        if len(self._pending) >= _INSERT_BATCH_SIZE:
            self._write_pending()

    def _find_shared(self, digest: bytes | None) -> tuple[int, int, int] | None:
        """Return the location of an equal value that another session contains."""
        found: tuple[int, int, int] | None = self._db.execute(
            "select blob_chunk_id, offset, size from raw_row where content_hash = ? and is_shared", [digest]
        ).fetchone()
        return found

    def _write_pending(self) -> None:
        if self._pending:
            self._db.executemany(_INSERT, self._pending)
            self._pending = []

    def flush(self) -> None:
        """Write pending rows and values, and free the space of replaced values."""
        self._write_pending()
        self._blobs.flush()
        for chunk_id in self._freed_chunks:
            compact_chunk(self._db, chunk_id)

    def mark_gone(self) -> None:
        """Mark the rows that were not stored again as gone."""
        self._set_gone([version for version in self._unseen.values() if not version.is_gone], is_gone=True)

    def _set_gone(self, versions: list[_Version], *, is_gone: bool) -> None:
        if versions:
            self._db.executemany(
                "update raw_row set is_gone = ? where id = ?",
                [(is_gone, version.id) for version in versions],
            )


def content_hash(value: bytes) -> bytes:
    """Return the first 16 bytes of the SHA-256."""
    return sha256(value).digest()[:_HASH_BYTES]


def _versions(db: sqlite3.Connection, unit_id: int) -> Iterator[tuple[_RowKey, _Version]]:
    """Yield every stored version of every row of a unit, oldest first."""
    for path, table, key, part, id_, version, digest, is_gone, is_text, removed_fields, *ref in db.execute(
        _SELECT, [unit_id]
    ):
        yield (
            (path, table, key, part),
            _Version(
                id_,
                version,
                digest,
                bool(is_gone),
                bool(is_text),
                removed_fields,
                BlobRef(*ref) if digest is not None else None,
            ),
        )


def read_rows(db: sqlite3.Connection, unit_id: int, *, fullest: bool = False) -> Iterator[RawRow]:
    """Yield the rows of a unit as of the last sync.

    With ``fullest``, include rows that are gone and, for emptied rows, their last content. Raises
    `ArchiveError` if a value is damaged.
    """
    chosen: dict[_RowKey, _Version] = {}
    for row_key, version in _versions(db, unit_id):
        if not fullest or version.content_hash is not None or row_key not in chosen:
            chosen[row_key] = version
    blobs = BlobStore(db)
    for (path, table, key, part), version in sorted(
        chosen.items(), key=lambda item: item[1].ref or (0, 0, 0)
    ):
        if version.is_gone and not fullest:
            continue
        value = blobs.get(version.ref) if version.ref is not None else None
        if value is not None and content_hash(value) != version.content_hash:
            reason = f"The archived row {key} is damaged. Run 'backscroll archive verify' to find all damage."
            raise ArchiveError(reason, Path(path))
        yield RawRow(
            path=path,
            table=table,
            key=key,
            part=part,
            value=value,
            is_text=version.is_text,
            blanked=tuple(msgspec.json.decode(version.removed_fields)) if version.removed_fields else (),
        )


def has_same_rows(db: sqlite3.Connection, unit_id: int, rows: Iterable[RawRow]) -> bool:
    """Return whether these rows equal the stored rows of a unit. False if they cannot be read."""
    newest = dict(_versions(db, unit_id))
    known = {row_key: version.content_hash for row_key, version in newest.items() if not version.is_gone}
    try:
        for row in rows:
            digest = content_hash(row.value) if row.value is not None else None
            if known.pop((row.path, row.table, row.key, row.part), b"") != digest:
                return False
    except (BackscrollError, sqlite3.OperationalError):  # of the source
        return False
    return not known


def delete_rows(db: sqlite3.Connection, unit_id: int) -> None:
    """Delete the rows of a unit, and their values except those that other sessions share."""
    query = "select distinct blob_chunk_id from raw_row where unit_id = ?"
    chunks = db.execute(query, [unit_id]).fetchall()
    db.execute("delete from raw_row where unit_id = ?", [unit_id])
    for (chunk_id,) in chunks:
        if chunk_id is not None:
            compact_chunk(db, chunk_id, always=True)


def damaged_rows(db: sqlite3.Connection) -> Iterator[tuple[int, int]]:
    """Yield id and unit of the rows whose content does not match its hash."""
    blobs = BlobStore(db)
    for row_id, unit_id, digest, *ref in db.execute(
        "select id, unit_id, content_hash, blob_chunk_id, offset, size from raw_row"
        " where content_hash is not null order by blob_chunk_id, offset"
    ).fetchall():
        if content_hash(blobs.get(BlobRef(*ref))) != digest:
            yield row_id, unit_id


def verify_rows(db: sqlite3.Connection) -> list[str]:
    """Return one sentence per damaged row."""
    keys = "select key from raw_row where id = ?"
    return [
        f"the archived row {db.execute(keys, [row_id]).fetchone()[0]} of unit {unit_id} is damaged"
        for row_id, unit_id in damaged_rows(db)
    ]


def is_superset(new: bytes, old: bytes, volatile_fields: tuple[str, ...] = ()) -> bool:
    """Return whether no content is lost if the old version is deleted.

    Text may have grown at its end, objects and lists anywhere. A number or boolean in a named field is state
    and may change, as may the ``volatile_fields``. An empty name among them makes the whole value volatile.
    """
    if "" in volatile_fields or new.startswith(old):
        return True
    try:
        return _contains(_decode(new), _decode(old), frozenset(volatile_fields))
    except _PARSE_ERRORS:
        return False


def _contains(new: Any, old: Any, volatile: frozenset[str]) -> bool:
    if type(new) is type(old) and new == old:  # the most frequent case in a long session
        return True
    match old:
        case None:
            return True
        case str():
            return isinstance(new, str) and _contains_text(new, old, volatile)
        case dict():
            return isinstance(new, dict) and all(
                name in volatile or (name in new and _contains_field(name, new[name], value, volatile))
                for name, value in old.items()
            )
        case list():
            return isinstance(new, list) and _contains_items(new, old, volatile)
    return False


def _contains_field(name: str, new: Any, old: Any, volatile: frozenset[str]) -> bool:
    # A number under a numeric name is content: a list spelled as an object, such as the bytes of an image.
    if isinstance(old, int | float) and isinstance(new, int | float) and not name.isdecimal():
        return True
    return _contains(new, old, volatile)


def _contains_text(new: str, old: str, volatile: frozenset[str]) -> bool:
    if new.startswith(old):
        return True
    if not old.startswith(_JSON_STARTS) or not new.startswith(_JSON_STARTS):
        return False
    try:
        return _contains(msgspec.json.decode(new), msgspec.json.decode(old), volatile)
    except msgspec.MsgspecError:
        return False


def _contains_items(new: list[Any], old: list[Any], volatile: frozenset[str]) -> bool:
    """Return whether all old items are in the new list, in the same order."""
    remaining = iter(new)
    return all(any(_contains(candidate, item, volatile) for candidate in remaining) for item in old)


def _decode(value: bytes) -> Any:
    """Decode JSON or hexadecimal digits of JSON. Raises one of `_PARSE_ERRORS` if it is neither."""
    try:
        return msgspec.json.decode(value)
    except msgspec.MsgspecError:
        return msgspec.json.decode(bytes.fromhex(value.decode("ascii")))


class BlobStore:
    """Write and read values. The caller opens a transaction before `add`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._pending_id = 0  # of the chunk that is being filled
        self._last_read: tuple[int, bytes] = (0, b"")  # chunk id and data

    def add(self, value: bytes) -> tuple[int, int, int]:
        """Add a value and return its location. It is written by the next `flush` at the latest."""
        if self._pending_bytes and self._pending_bytes + len(value) > _CHUNK_BYTES:
            self.flush()
        if not self._pending_id:
            row = self._db.execute("select coalesce(max(id), 0) + 1 from blob_chunk").fetchone()
            self._pending_id = int(row[0])
        ref = (self._pending_id, self._pending_bytes, len(value))
        self._pending.append(value)
        self._pending_bytes += len(value)
        if self._pending_bytes >= _CHUNK_BYTES:
            self.flush()
        return ref

    def flush(self) -> None:
        """Write the chunk that is being filled."""
        if self._pending_id:
            self.write(self._pending_id, b"".join(self._pending))
            self._pending, self._pending_bytes, self._pending_id = [], 0, 0

    def write(self, chunk_id: int, data: bytes) -> None:
        """Write or replace a chunk."""
        body = _compressor().compress(data, zstd.ZstdCompressor.FLUSH_FRAME)
        self._db.execute("insert or replace into blob_chunk values (?, ?, ?)", [chunk_id, len(data), body])
        self._last_read = (0, b"")

    def get(self, ref: BlobRef) -> bytes:
        """Return a value that was written; fewer bytes if the chunk is missing or damaged."""
        if self._last_read[0] != ref.chunk_id:
            row = self._db.execute("select body from blob_chunk where id = ?", [ref.chunk_id]).fetchone()
            try:
                data = decompress(row[0]) if row is not None else b""
            except zstd.ZstdError:  # the caller compares the content hash
                data = b""
            self._last_read = (ref.chunk_id, data)
        return self._last_read[1][ref.offset : ref.offset + ref.size]


@cache
def _compressor() -> zstd.ZstdCompressor:
    """Return the shared compressor. Allocating its tables costs more than compressing a small chunk."""
    return zstd.ZstdCompressor(options=_COMPRESSION)


def compact_chunk(db: sqlite3.Connection, chunk_id: int, *, always: bool = False) -> None:
    """Rewrite a chunk without unused values, if these are more than half of it or with ``always``."""
    used = _used_refs(db, chunk_id)
    if not used:
        db.execute("delete from blob_chunk where id = ?", [chunk_id])
        return
    used_bytes = sum(ref.size for ref in used)
    (size,) = db.execute("select size from blob_chunk where id = ?", [chunk_id]).fetchone()
    if used_bytes < size if always else used_bytes * 2 < size:
        _move(db, BlobStore(db), used, chunk_id)


def merge_small_chunks(db: sqlite3.Connection) -> int:
    """Remove unused values and merge small chunks. Return by how many the number of chunks shrank."""
    for (chunk_id,) in db.execute(
        "select c.id from blob_chunk c left join (select blob_chunk_id, offset, size from raw_row"
        " where blob_chunk_id is not null group by blob_chunk_id, offset) r on r.blob_chunk_id = c.id"
        " group by c.id having coalesce(sum(r.size), 0) < max(c.size)"
    ).fetchall():
        compact_chunk(db, chunk_id, always=True)
    small = db.execute("select id from blob_chunk where size < ? order by id", [_CHUNK_BYTES // 2]).fetchall()
    store = BlobStore(db)
    pending: list[BlobRef] = []
    merged: list[int] = []
    written = 0
    for (chunk_id,) in small:
        pending += _used_refs(db, chunk_id)
        merged.append(chunk_id)
        if sum(ref.size for ref in pending) >= _CHUNK_BYTES or chunk_id == small[-1][0]:
            if len(merged) > 1:
                _merge(db, store, pending, merged)
            written += 1
            pending, merged = [], []
    return len(small) - written


def _used_refs(db: sqlite3.Connection, chunk_id: int) -> list[BlobRef]:
    """Return the values of a chunk that rows refer to, by offset."""
    found = db.execute(
        "select distinct blob_chunk_id, offset, size from raw_row where blob_chunk_id = ? order by offset",
        [chunk_id],
    )
    return [BlobRef(*row) for row in found]


def _move(db: sqlite3.Connection, store: BlobStore, refs: list[BlobRef], chunk_id: int) -> None:
    """Write values, joined, into a chunk with this id and update the rows."""
    data = [store.get(ref) for ref in refs]
    offset = 0
    for ref in refs:  # by offset: a value never moves onto one that is still to be moved
        db.execute(
            "update raw_row set blob_chunk_id = ?, offset = ? where blob_chunk_id = ? and offset = ?",
            [chunk_id, offset, ref.chunk_id, ref.offset],
        )
        offset += ref.size
    store.write(chunk_id, b"".join(data))


def _merge(db: sqlite3.Connection, store: BlobStore, refs: list[BlobRef], merged: list[int]) -> None:
    (chunk_id,) = db.execute("select max(id) + 1 from blob_chunk").fetchone()
    _move(db, store, refs, chunk_id)
    db.executemany("delete from blob_chunk where id = ?", [(id_,) for id_ in merged])
