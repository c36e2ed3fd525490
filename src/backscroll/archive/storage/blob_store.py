"""Where the values of kept rows lie: many together in a compressed piece."""

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

_PIECE = 2 * 1024 * 1024  # bytes: the same answers and files lie in several rows, and not side by side
# As quick as the lowest level is, and with the whole of a piece in sight.
_OPTIONS: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.window_log: _PIECE.bit_length() - 1,
    zstd.CompressionParameter.hash_log: 16,
}


@cache
def _compressor() -> zstd.ZstdCompressor:
    """One for all: its tables cost more than a small piece does."""
    return zstd.ZstdCompressor(options=_OPTIONS)


class BlobRef(NamedTuple):
    """The place of a value."""

    piece: int
    offset: int
    size: int


class BlobStore:
    """Takes values in, and gives them back; the caller has a transaction open while it takes any."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._held: list[bytes] = []
        self._size = 0
        self._number = 0  # of the piece in hand
        self._open: tuple[int, bytes] = (0, b"")  # the piece read last

    def add(self, value: bytes) -> tuple[int, int, int]:
        """Take a value in; it is written with the next `flush` at the latest. What a `BlobRef` says of it."""
        if self._size and self._size + len(value) > _PIECE:
            self.flush()
        if not self._number:
            row = self._db.execute("select coalesce(max(id), 0) + 1 from blob_chunk").fetchone()
            self._number = int(row[0])
        spot = (self._number, self._size, len(value))
        self._held.append(value)
        self._size += len(value)
        if self._size >= _PIECE:
            self.flush()
        return spot

    def flush(self) -> None:
        """Write the piece in hand."""
        if self._number:
            self.write(self._number, b"".join(self._held))
            self._held, self._size, self._number = [], 0, 0

    def write(self, number: int, data: bytes) -> None:
        """Write a piece, in the place of the one that has this number."""
        body = _compressor().compress(data, zstd.ZstdCompressor.FLUSH_FRAME)
        self._db.execute("insert or replace into blob_chunk values (?, ?, ?)", [number, len(data), body])
        self._open = (0, b"")

    def get(self, spot: BlobRef) -> bytes:
        """A value that was written."""
        if self._open[0] != spot.piece:
            row = self._db.execute("select body from blob_chunk where id = ?", [spot.piece]).fetchone()
            try:
                data = decompress(row[0]) if row is not None else b""
            except zstd.ZstdError:  # damaged; the digest tells
                data = b""
            self._open = (spot.piece, data)
        return self._open[1][spot.offset : spot.offset + spot.size]


def _spots(db: sqlite3.Connection, piece: int) -> list[BlobRef]:
    """What rows still have of a piece, from its beginning to its end."""
    found = db.execute(
        "select distinct blob_chunk_id, offset, size from raw_row where blob_chunk_id = ? order by offset",
        [piece],
    )
    return [BlobRef(*row) for row in found]


def compact_chunk(db: sqlite3.Connection, piece: int, *, always: bool = False) -> None:
    """After rows have let go of values: write their piece anew without them, where that pays or must be."""
    left = _spots(db, piece)
    if not left:
        db.execute("delete from blob_chunk where id = ?", [piece])
        return
    live = sum(spot.size for spot in left)
    (size,) = db.execute("select size from blob_chunk where id = ?", [piece]).fetchone()
    if live < size if always else live * 2 < size:
        pieces = BlobStore(db)
        _move(db, pieces, left, piece)


def _move(db: sqlite3.Connection, pieces: BlobStore, spots: list[BlobRef], number: int) -> None:
    """Write values one after the other into a piece of this number."""
    data = [pieces.get(spot) for spot in spots]
    offset = 0
    for spot in spots:  # never to the right of where one lies that is still to be moved
        db.execute(
            "update raw_row set blob_chunk_id = ?, offset = ? where blob_chunk_id = ? and offset = ?",
            [number, offset, spot.piece, spot.offset],
        )
        offset += spot.size
    pieces.write(number, b"".join(data))


def merge_small_chunks(db: sqlite3.Connection) -> int:
    """Make few pieces of many small ones, and drop what no row has; how many fewer there are."""
    for (piece,) in db.execute(
        "select c.id from blob_chunk c left join (select blob_chunk_id, offset, size from raw_row"
        " where blob_chunk_id is not null group by blob_chunk_id, offset) r on r.blob_chunk_id = c.id"
        " group by c.id having coalesce(sum(r.size), 0) < max(c.size)"
    ).fetchall():
        compact_chunk(db, piece, always=True)
    small = db.execute("select id from blob_chunk where size < ? order by id", [_PIECE // 2]).fetchall()
    pieces = BlobStore(db)
    waiting: list[BlobRef] = []
    emptied: list[int] = []
    written = 0
    for (piece,) in small:
        waiting += _spots(db, piece)
        emptied.append(piece)
        if sum(spot.size for spot in waiting) >= _PIECE or piece == small[-1][0]:
            if len(emptied) > 1:
                _gather(db, pieces, waiting, emptied)
            written += 1
            waiting, emptied = [], []
    return len(small) - written


def _gather(db: sqlite3.Connection, pieces: BlobStore, spots: list[BlobRef], emptied: list[int]) -> None:
    (number,) = db.execute("select max(id) + 1 from blob_chunk").fetchone()
    _move(db, pieces, spots, number)
    db.executemany("delete from blob_chunk where id = ?", [(piece,) for piece in emptied])
