"""Bodies that lean on others: what was kept already is not kept a second time.

A resumed or forked file leans on the one that it repeats, and a file's bytes on the messages that were read
from it. A body that leans names its base in front of the compressed bytes, and cannot be read without it. So
the base's rows must not go or change before `rebase_fragment_dependents` or `rebase_unit_dependents`
has stored anew what leans on them; the foreign keys refuse it.
"""

import sqlite3
import sys
from collections.abc import Iterable, Sequence
from struct import Struct

from backscroll.archive.storage.codec import (
    Chunk,
    compress,
    decode_messages,
    decompress,
    frame_as_list,
    recompress_chunk,
)
from backscroll.archive.storage.decompress import ParallelDecompressor
from backscroll.archive.storage.seekable import read_seek_table
from backscroll.model import Message

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = [
    "BodyReader",
    "encode_delta_chunk",
    "encode_delta_segment",
    "encode_message_delta",
    "read_checkpoint_state",
    "read_message",
    "read_messages",
    "rebase_fragment_dependents",
    "rebase_unit_dependents",
]

_MARK = b"\x01"  # no compressed body and no list of messages begins so
_LINES = b"\x02"  # the same, of what leans on messages as they would stand in lines of JSON
_CHUNK = Struct(">cqqq")  # the mark, the base's account, positions of the first and last of its pieces
_ORIGINAL = Struct(">cqqq")  # the mark, the base's state, where in it the repeated bytes begin, how many
_TOLD = Struct(">cqq")  # the mark, positions of the first and last of the account's pieces
_WINDOW = 25  # as a power of two: more than a piece of a file and all that it may lean on
# For what repeats another file: room to find whatever stands in it, be it as short as a tiny line's text.
_FAR: dict[int, dict[int, int]] = {
    bits: {
        zstd.CompressionParameter.compression_level: 3,
        zstd.CompressionParameter.window_log: _WINDOW,
        zstd.CompressionParameter.hash_log: bits,
        zstd.CompressionParameter.chain_log: min(bits, 20),
    }
    for bits in range(12, 23)
}
# For a file beside what was told of it: a larger table than the level has, since what is looked for lies far
# back, but of a small file none that takes longer to empty than to fill; a higher level takes a third longer
# for a fiftieth less.
_NEAR: dict[int, dict[int, int]] = {
    bits: {
        zstd.CompressionParameter.compression_level: 1,
        zstd.CompressionParameter.window_log: 23,
        zstd.CompressionParameter.hash_log: bits,
    }
    for bits in range(12, 19)
}
_AT_HAND = 32 * 1024 * 1024  # bytes


class BodyReader:
    """Bodies as they were before they were compressed; some stay at hand, for what leans on them."""

    def __init__(self, db: sqlite3.Connection, *, max_cache_bytes: int = _AT_HAND) -> None:
        self._db = db
        self._at_hand: dict[tuple[int, ...], bytes] = {}
        self._size = 0
        self._most = max_cache_bytes  # bytes

    def decode(self, body: bytes) -> bytes:
        """The messages of a chunk, or of an amendment, as they were packed."""
        if not body.startswith(_MARK):
            return decompress(body)
        _, account, first, last = _CHUNK.unpack_from(body)
        return _unfolded(body[_CHUNK.size :], self.read_chunks(account, first, last))

    def decode_all(self, bodies: Sequence[bytes]) -> list[bytes]:
        """The same of many chunks, on two processors where there are."""
        alone = ParallelDecompressor([body for body in bodies if not body.startswith(_MARK)])
        leaning = [self.decode(body) for body in bodies if body.startswith(_MARK)]
        both = iter(leaning), iter(alone.result())
        return [next(both[not body.startswith(_MARK)]) for body in bodies]

    def read_chunks(self, account: int, first: int, last: int) -> bytes:
        """Several pieces of an account, one after the other."""
        rows = self._db.execute(
            "select position from message_chunk where fragment_id = ? and position between ? and ?"
            " order by position",
            [account, first, last],
        ).fetchall()
        return b"".join(self._piece(account, place) for (place,) in rows)

    def _piece(self, account: int, place: int) -> bytes:
        known = self._at_hand.get((account, place))
        if known is not None:
            return known
        query = "select body from message_chunk where fragment_id = ? and position = ?"
        (body,) = self._db.execute(query, [account, place]).fetchone()
        return self.cache((account, place), self.decode(body))

    def decode_segment(self, base: int | None, account: int | None, body: bytes) -> bytes:
        """A piece of a file, byte for byte; what it leans on is another file, or what was told of it."""
        if account is not None:
            mark, first, last = _TOLD.unpack_from(body)
            told = self.read_chunks(account, first, last)
            return _unfolded(body[_TOLD.size :], _in_lines(told) if mark == _LINES else told)
        if base is None:
            return decompress(body)
        _, state, offset, size = _ORIGINAL.unpack_from(body)
        return _unfolded(body[_ORIGINAL.size :], self.read_file_range(base, state, offset, size))

    def read_file_range(self, unit: int, state: int, offset: int, size: int) -> bytes:
        """Bytes of a kept file."""
        rows = self._db.execute(
            "select offset from raw_segment where unit_id = ? and version = ? and offset < ?"
            " and offset + size > ? order by offset",
            [unit, state, offset + size, offset],
        ).fetchall()
        if not rows:
            return b""
        data = b"".join(self._segment(unit, state, start) for (start,) in rows)
        return data[offset - rows[0][0] :][:size]

    def _segment(self, unit: int, state: int, start: int) -> bytes:
        known = self._at_hand.get((unit, state, start))
        if known is not None:
            return known
        query = (
            "select delta_base_unit_id, delta_base_fragment_id, body from raw_segment"
            " where unit_id = ? and version = ? and offset = ?"
        )
        row = self._db.execute(query, [unit, state, start]).fetchone()
        return self.cache((unit, state, start), self.decode_segment(*row))

    def cache(self, key: tuple[int, ...], data: bytes) -> bytes:
        """Keep a piece at hand, and let go of those that came first."""
        self._at_hand[key] = data
        self._size += len(data)
        while self._size > self._most and len(self._at_hand) > 1:
            self._size -= len(self._at_hand.pop(next(iter(self._at_hand))))
        return data


def read_messages(db: sqlite3.Connection, body: bytes) -> list[Message]:
    """The messages of a chunk, whether or not it leans on another."""
    return decode_messages(BodyReader(db).decode(body))


def read_message(db: sqlite3.Connection, body: bytes, place: int) -> Message:
    """One of the messages of a chunk."""
    frames = read_seek_table(body)
    if frames is None:
        return Chunk(BodyReader(db).decode(body)).message(place)
    number = frames.frame_index(place)
    plain = decompress(frames.frame(body, number))
    return Chunk(frame_as_list(plain, frames, number)).message(place - frames.first_positions[number])


def encode_delta_chunk(data: bytes, base: bytes, *, account: int, first: int, last: int) -> bytes:
    """A chunk's body that leans on pieces of another account, which are ``base`` together."""
    return _CHUNK.pack(_MARK, account, first, last) + _folded(data, _raw(base), _FAR)


def encode_delta_segment(data: bytes, base: bytes, *, state: int, offset: int) -> bytes:
    """A piece of a file that leans on ``base``, a stretch of another file."""
    return _ORIGINAL.pack(_MARK, state, offset, len(base)) + _folded(data, _raw(base), _FAR)


def encode_message_delta(
    data: bytes, told: bytes, *, first: int, last: int, has_lines: bool = False
) -> bytes:
    """A piece of a file, or a state, that leans on the messages read from it; ``told`` are pieces of them.

    What has lines of JSON leans on the messages as they stand there.
    """
    base = _raw(_in_lines(told) if has_lines else told)
    body = _folded(data, base, _NEAR)
    return _TOLD.pack(_LINES if has_lines else _MARK, first, last) + body


def _in_lines(told: bytes) -> bytes:
    """Messages with their text escaped as lines of JSON have it; else it differs where a line of it ends.

    What was kept leans on exactly these bytes: this never changes.
    """
    return told.replace(b"\\", rb"\\").replace(b"\n", rb"\n").replace(b'"', rb"\"").replace(b"\t", rb"\t")


def read_checkpoint_state(db: sqlite3.Connection, unit: int, body: bytes) -> bytes | None:
    """What must be remembered to go on reading a file; None when that cannot be told any more."""
    if not body.startswith((_MARK, _LINES)):
        return decompress(body)
    query = "select id from fragment where unit_id = ? and status = 'current'"
    accounts = db.execute(query, [unit]).fetchall()
    if len(accounts) != 1:
        return None
    try:
        return BodyReader(db).decode_segment(None, accounts[0][0], body)
    except zstd.ZstdError:
        return None


def _raw(base: bytes) -> zstd.ZstdDict:
    return zstd.ZstdDict(base, is_raw=True)


def _folded(data: bytes, base: zstd.ZstdDict, options: dict[int, dict[int, int]]) -> bytes:
    """Bytes that lean on others, with tables that take no longer to empty than to fill."""
    bits = min(max((len(data) + len(base)).bit_length() - 2, min(options)), max(options))
    return zstd.compress(data, options=options[bits], zstd_dict=base.as_prefix)


def _unfolded(body: bytes, base: bytes) -> bytes:
    if not base:
        raise zstd.ZstdError("what it leans on is missing")
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW}
    return zstd.decompress(body, zstd_dict=_raw(base).as_prefix, options=options)


def rebase_fragment_dependents(db: sqlite3.Connection, accounts: Iterable[int]) -> None:
    """Before accounts go: store what leans on them so that it can be read without them."""
    for number in accounts:
        query = "select rowid, body from message_chunk where delta_base_fragment_id = ?"
        rows = db.execute(query, [number]).fetchall()
        plain = BodyReader(db)
        for row, body in rows:
            data = recompress_chunk(plain.decode(body))
            query = "update message_chunk set delta_base_fragment_id = null, body = ? where rowid = ?"
            db.execute(query, [data, row])
        query = "select rowid from raw_segment where delta_base_fragment_id = ?"
        for (row,) in db.execute(query, [number]).fetchall():
            (body,) = db.execute("select body from raw_segment where rowid = ?", [row]).fetchone()
            data = compress(plain.decode_segment(None, number, body))
            query = "update raw_segment set delta_base_fragment_id = null, body = ? where rowid = ?"
            db.execute(query, [data, row])


def rebase_unit_dependents(db: sqlite3.Connection, unit: int, *, offset: int = 0) -> None:
    """Before a kept file goes, or changes from an offset on: store anew what leans on it."""
    rows = db.execute("select rowid from raw_segment where delta_base_unit_id = ?", [unit]).fetchall()
    plain = BodyReader(db)
    for (row,) in rows:
        (body,) = db.execute("select body from raw_segment where rowid = ?", [row]).fetchone()
        _, _, start, size = _ORIGINAL.unpack_from(body)
        if start + size > offset:
            data = compress(plain.decode_segment(unit, None, body))
            query = "update raw_segment set delta_base_unit_id = null, body = ? where rowid = ?"
            db.execute(query, [data, row])
