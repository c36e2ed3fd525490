"""Values of stored database rows. Many values share a compressed chunk."""

import sqlite3
import sys
from functools import cache
from typing import NamedTuple

from backscroll.archive.storage.codec import decompress

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["BlobRef", "BlobStore", "compact_chunk", "merge_small_chunks"]

_CHUNK_BYTES = 2 * 1024 * 1024  # large, because equal answers and files are in rows that are far apart
# As fast as level 1, with a window as large as a chunk.
_COMPRESSION: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.window_log: _CHUNK_BYTES.bit_length() - 1,
    zstd.CompressionParameter.hash_log: 16,
}


@cache
def _compressor() -> zstd.ZstdCompressor:
    """Return the shared compressor. Allocating its tables costs more than compressing a small chunk."""
    return zstd.ZstdCompressor(options=_COMPRESSION)


class BlobRef(NamedTuple):
    """Location of a value."""

    chunk_id: int
    offset: int
    size: int


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


def _used_refs(db: sqlite3.Connection, chunk_id: int) -> list[BlobRef]:
    """Return the values of a chunk that rows refer to, by offset."""
    found = db.execute(
        "select distinct blob_chunk_id, offset, size from raw_row where blob_chunk_id = ? order by offset",
        [chunk_id],
    )
    return [BlobRef(*row) for row in found]


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


def _merge(db: sqlite3.Connection, store: BlobStore, refs: list[BlobRef], merged: list[int]) -> None:
    (chunk_id,) = db.execute("select max(id) + 1 from blob_chunk").fetchone()
    _move(db, store, refs, chunk_id)
    db.executemany("delete from blob_chunk where id = ?", [(id_,) for id_ in merged])
