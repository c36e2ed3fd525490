"""Delta compression of stored bodies.

A body is compressed with bytes that the archive already contains as a Zstandard prefix. Three cases:

    chunk    against the chunks of another fragment (a resumed or forked session repeats it)
    segment  against a range of another file (the same, for the original files)
    segment  against the messages that were read from the file itself

A delta body starts with a header that names its base, and is unreadable without it. Call
`rebase_fragment_dependents` or `rebase_unit_dependents` before rows of a base are deleted or changed. Foreign
keys reject the deletion otherwise.
"""

import sqlite3
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from backscroll.archive.connection import text_list
from backscroll.archive.storage.codec import (
    Chunk,
    compress,
    decode_messages,
    decompress,
    frame_as_list,
    read_seek_table,
    recompress_chunk,
)
from backscroll.lru_cache import LRUCache
from backscroll.model.message import Message
from backscroll.model.store import single_session_kinds

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_DELTA = b"\x01"  # neither a compressed body nor a list of messages starts with this byte
_ESCAPED_DELTA = b"\x02"  # the base are messages escaped as in JSON
_CHUNK_HEADER = Struct(">cqqq")  # marker, fragment of the base, positions of its first and last chunk
_SEGMENT_HEADER = Struct(">cqqq")  # marker, version of the base file, offset, size
_MESSAGES_HEADER = Struct(">cqq")  # marker, positions of the first and last chunk
_WINDOW_LOG = 25  # larger than a segment and the largest base together
_MAX_CACHE_BYTES = 32 * 1024 * 1024
# Against another file: large tables, which find matches as short as the text of a small line.
_REPEAT_OPTIONS: dict[int, dict[int, int]] = {
    bits: {
        zstd.CompressionParameter.compression_level: 3,
        zstd.CompressionParameter.window_log: _WINDOW_LOG,
        zstd.CompressionParameter.hash_log: bits,
        zstd.CompressionParameter.chain_log: min(bits, 20),
    }
    for bits in range(12, 23)
}
# Against the messages of the file: a larger table than the default of level 1, because matches are far back.
# A higher level takes 30 % longer and saves 2 %.
_MESSAGE_OPTIONS: dict[int, dict[int, int]] = {
    bits: {
        zstd.CompressionParameter.compression_level: 1,
        zstd.CompressionParameter.window_log: 23,
        zstd.CompressionParameter.hash_log: bits,
    }
    for bits in range(12, 19)
}

_MAX_DEPTH = 8  # bases of bases
_MIN_SHARED_FRACTION = 0.3  # of the messages; a smaller share saves too little
_DEPTH_TOLERANCE = 0.02  # a base with so much less in common is better if it has fewer bases itself
_MAX_BASE_CHUNKS = 6  # per chunk
_BASE_BYTES_BEFORE = 4 * 1024 * 1024  # range of the base file around the offset of a segment
_BASE_BYTES_AFTER = 12 * 1024 * 1024


class BodyReader:
    """Decode bodies with and without a delta base. Caches decompressed bases."""

    def __init__(self, db: sqlite3.Connection, *, max_cache_bytes: int = _MAX_CACHE_BYTES) -> None:
        self._db = db
        # Chunks by (fragment, position) and segments by (unit, version, offset).
        self._bases: LRUCache[tuple[int, ...], bytes] = LRUCache(max_cache_bytes, size_of=len)

    def decode(self, body: bytes) -> bytes:
        """Decompress the body of a chunk or a message update."""
        if not body.startswith(_DELTA):
            return decompress(body)
        _, fragment_id, first, last = _CHUNK_HEADER.unpack_from(body)
        return _decompress_delta(body[_CHUNK_HEADER.size :], self.read_chunks(fragment_id, first, last))

    def read_chunks(self, fragment_id: int, first: int, last: int) -> bytes:
        """Return the decompressed chunks of a fragment between two positions, joined."""
        rows = self._db.execute(
            "select position from message_chunk where fragment_id = ? and position between ? and ?"
            " order by position",
            [fragment_id, first, last],
        ).fetchall()
        return b"".join(self._read_chunk(fragment_id, position) for (position,) in rows)

    def _read_chunk(self, fragment_id: int, position: int) -> bytes:
        cached = self._bases.get((fragment_id, position))
        if cached is not None:
            return cached
        query = "select body from message_chunk where fragment_id = ? and position = ?"
        (body,) = self._db.execute(query, [fragment_id, position]).fetchone()
        data = self.decode(body)
        self.cache((fragment_id, position), data)
        return data

    def decode_segment(self, base_unit_id: int | None, base_fragment_id: int | None, body: bytes) -> bytes:
        """Return a segment of an original file, byte for byte."""
        if base_fragment_id is not None:
            marker, first, last = _MESSAGES_HEADER.unpack_from(body)
            messages = self.read_chunks(base_fragment_id, first, last)
            base = _escape(messages) if marker == _ESCAPED_DELTA else messages
            return _decompress_delta(body[_MESSAGES_HEADER.size :], base)
        if base_unit_id is None:
            return decompress(body)
        _, version, offset, size = _SEGMENT_HEADER.unpack_from(body)
        base = self.read_file_range(base_unit_id, version, offset, size)
        return _decompress_delta(body[_SEGMENT_HEADER.size :], base)

    def read_file_range(self, unit_id: int, version: int, offset: int, size: int) -> bytes:
        """Return bytes of a stored file."""
        rows = self._db.execute(
            "select offset from raw_segment where unit_id = ? and version = ? and offset < ?"
            " and offset + size > ? order by offset",
            [unit_id, version, offset + size, offset],
        ).fetchall()
        if not rows:
            return b""
        data = b"".join(self._read_segment(unit_id, version, start) for (start,) in rows)
        return data[offset - rows[0][0] :][:size]

    def _read_segment(self, unit_id: int, version: int, offset: int) -> bytes:
        cached = self._bases.get((unit_id, version, offset))
        if cached is not None:
            return cached
        query = (
            "select delta_base_unit_id, delta_base_fragment_id, body from raw_segment"
            " where unit_id = ? and version = ? and offset = ?"
        )
        row = self._db.execute(query, [unit_id, version, offset]).fetchone()
        data = self.decode_segment(*row)
        self.cache((unit_id, version, offset), data)
        return data

    def cache(self, key: tuple[int, ...], data: bytes) -> None:
        """Cache a decompressed chunk or segment."""
        self._bases.put(key, data)


def read_messages(db: sqlite3.Connection, body: bytes) -> list[Message]:
    """Return the messages of a chunk, with or without a delta base."""
    return decode_messages(BodyReader(db).decode(body))


def read_message(db: sqlite3.Connection, body: bytes, index: int) -> Message:
    """Return one message of a chunk. Decompress only its frame if the chunk has a seek table."""
    table = read_seek_table(body)
    if table is None:
        return Chunk(BodyReader(db).decode(body)).message(index)
    frame = table.frame_index(index)
    data = decompress(table.frame(body, frame))
    return Chunk(frame_as_list(data, table, frame)).message(index - table.first_positions[frame])


def read_checkpoint_state(db: sqlite3.Connection, unit_id: int, body: bytes) -> bytes | None:
    """Return the state that continues reading a file; None if it cannot be decoded any more."""
    if not body.startswith((_DELTA, _ESCAPED_DELTA)):
        return decompress(body)
    query = "select id from fragment where unit_id = ? and status = 'current'"
    fragments = db.execute(query, [unit_id]).fetchall()
    if len(fragments) != 1:
        return None
    try:
        return BodyReader(db).decode_segment(None, fragments[0][0], body)
    except zstd.ZstdError:
        return None


def _encode_delta_chunk(data: bytes, base: bytes, *, fragment_id: int, first: int, last: int) -> bytes:
    """Compress a chunk against ``base``, the joined chunks of another fragment."""
    return _CHUNK_HEADER.pack(_DELTA, fragment_id, first, last) + _compress_delta(data, base, _REPEAT_OPTIONS)


def with_moved_base(body: bytes, offset: int) -> bytes:
    """Return the body of a chunk after ``offset`` was added to all fragment ids: its header has one."""
    if not body.startswith(_DELTA):
        return body
    marker, fragment_id, first, last = _CHUNK_HEADER.unpack_from(body)
    return _CHUNK_HEADER.pack(marker, fragment_id + offset, first, last) + body[_CHUNK_HEADER.size :]


def _encode_delta_segment(data: bytes, base: bytes, *, version: int, offset: int) -> bytes:
    """Compress a segment against ``base``, a range of another file."""
    return _SEGMENT_HEADER.pack(_DELTA, version, offset, len(base)) + _compress_delta(
        data, base, _REPEAT_OPTIONS
    )


def encode_message_delta(
    data: bytes, messages: bytes, *, first: int, last: int, is_jsonl: bool = False
) -> bytes:
    """Compress a segment or a checkpoint state against the messages read from the file.

    The messages are joined decompressed chunks. For lines of JSON they are escaped as they are there.
    """
    body = _compress_delta(data, _escape(messages) if is_jsonl else messages, _MESSAGE_OPTIONS)
    return _MESSAGES_HEADER.pack(_ESCAPED_DELTA if is_jsonl else _DELTA, first, last) + body


def _escape(messages: bytes) -> bytes:
    """Escape text as JSON does, so that it matches the lines of the file.

    Stored bodies depend on exactly this output. Do not change it.
    """
    return messages.replace(b"\\", rb"\\").replace(b"\n", rb"\n").replace(b'"', rb"\"").replace(b"\t", rb"\t")


def _compress_delta(data: bytes, base: bytes, options: dict[int, dict[int, int]]) -> bytes:
    """Compress with a prefix, and with tables no larger than the data: clearing them takes time."""
    bits = min(max((len(data) + len(base)).bit_length() - 2, min(options)), max(options))
    return zstd.compress(data, options=options[bits], zstd_dict=_prefix(base).as_prefix)


def _decompress_delta(body: bytes, base: bytes) -> bytes:
    if not base:
        raise zstd.ZstdError("The delta base is missing.")
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
    return zstd.decompress(body, zstd_dict=_prefix(base).as_prefix, options=options)


def _prefix(base: bytes) -> zstd.ZstdDict:
    return zstd.ZstdDict(base, is_raw=True)


def rebase_fragment_dependents(db: sqlite3.Connection, fragment_ids: Iterable[int]) -> None:
    """Store the bodies whose delta base is one of these fragments without a base."""
    for fragment_id in fragment_ids:
        query = "select rowid, body from message_chunk where delta_base_fragment_id = ?"
        rows = db.execute(query, [fragment_id]).fetchall()
        reader = BodyReader(db)
        for row, body in rows:
            data = recompress_chunk(reader.decode(body))
            query = "update message_chunk set delta_base_fragment_id = null, body = ? where rowid = ?"
            db.execute(query, [data, row])
        query = "select rowid from raw_segment where delta_base_fragment_id = ?"
        for (row,) in db.execute(query, [fragment_id]).fetchall():
            (body,) = db.execute("select body from raw_segment where rowid = ?", [row]).fetchone()
            data = compress(reader.decode_segment(None, fragment_id, body))
            query = "update raw_segment set delta_base_fragment_id = null, body = ? where rowid = ?"
            db.execute(query, [data, row])


def rebase_unit_dependents(db: sqlite3.Connection, unit_id: int, *, offset: int = 0) -> None:
    """Store the segments whose delta base is this file, from an offset on, without a base."""
    rows = db.execute("select rowid from raw_segment where delta_base_unit_id = ?", [unit_id]).fetchall()
    reader = BodyReader(db)
    for (row,) in rows:
        (body,) = db.execute("select body from raw_segment where rowid = ?", [row]).fetchone()
        _, _, start, size = _SEGMENT_HEADER.unpack_from(body)
        if start + size > offset:
            data = compress(reader.decode_segment(unit_id, None, body))
            query = "update raw_segment set delta_base_unit_id = null, body = ? where rowid = ?"
            db.execute(query, [data, row])


class _File(NamedTuple):
    """A file that contains one session, and its only fragment."""

    fragment_id: int
    unit_id: int
    message_count: int


def delta_compress_repeats(db: sqlite3.Connection) -> bool:
    """Delta-compress the changed fragments that mostly repeat another one: resumed and forked sessions.

    Return whether there were any, so that the archive has free pages.
    """
    has_free_pages = False
    for fragment_id, shared_counts in _shared_counts(db):
        file = _single_session_file(db, fragment_id)
        if file is None or max(shared_counts.values()) < file.message_count * _MIN_SHARED_FRACTION:
            continue
        can_rebase_chunks, can_rebase_segments = _can_rebase(db, file)
        base = _choose_base(db, file, shared_counts) if can_rebase_chunks or can_rebase_segments else None
        if base is None:
            continue
        if can_rebase_chunks:
            _rebase_chunks(db, file, base)
        if can_rebase_segments:
            _rebase_segments(db, file, base)
        has_free_pages = True
    return has_free_pages


def _shared_counts(db: sqlite3.Connection) -> list[tuple[int, dict[int, float]]]:
    """Return the changed fragments, newest first, with the number of messages each other fragment shares.

    A copy with new record ids still shares its responses. These are scaled by the messages per response.
    """
    found: dict[int, dict[int, float]] = {}
    for query in (
        "select m.fragment_id, o.fragment_id, count(distinct m.record_hash) * 1.0 * f.message_count /"
        " (select count(distinct record_hash) from message where fragment_id = m.fragment_id)"
        " from shared s cross join message m on m.record_hash = s.record_hash"
        " join changed c on c.fragment_id = m.fragment_id join fragment f on f.id = m.fragment_id"
        " cross join message o on o.record_hash = m.record_hash and o.fragment_id <> m.fragment_id"
        " group by 1, 2",
        "select r.fragment_id, o.fragment_id, count(*) * 1.0 * f.message_count /"
        " (select count(*) from response where fragment_id = r.fragment_id)"
        " from repeated s cross join response r on r.response_hash = s.response_hash"
        " join changed c on c.fragment_id = r.fragment_id join fragment f on f.id = r.fragment_id"
        " cross join response o on o.response_hash = r.response_hash and o.fragment_id <> r.fragment_id"
        " group by 1, 2",
    ):
        for fragment_id, other_id, count in db.execute(query):
            counts = found.setdefault(fragment_id, {})
            counts[other_id] = max(counts.get(other_id, 0), count)
    return sorted(found.items(), reverse=True)


def _single_session_file(db: sqlite3.Connection, fragment_id: int) -> _File | None:
    """Return the file of a fragment; None if it contains other sessions too or its original is not stored."""
    row = db.execute(
        "select f.id, f.unit_id, f.message_count from fragment f join unit u on u.id = f.unit_id"  # noqa: S608
        " where f.id = ? and f.status = 'current' and f.message_count > 0"
        f" and u.kind in {text_list(single_session_kinds())}"
        " and not exists (select 1 from fragment o where o.unit_id = f.unit_id and o.id <> f.id)"
        " and exists (select 1 from raw_segment r where r.unit_id = f.unit_id)",
        [fragment_id],
    ).fetchone()
    return _File(*row) if row is not None else None


def _can_rebase(db: sqlite3.Connection, file: _File) -> tuple[bool, bool]:
    """Return whether the chunks, and the segments, neither have a base nor are one."""
    chunk, segment = (
        db.execute(query, {"id": id_}).fetchone() is None
        for query, id_ in (
            (
                "select 1 from message_chunk where fragment_id = :id"
                " and delta_base_fragment_id is not null or delta_base_fragment_id = :id",
                file.fragment_id,
            ),
            (
                "select 1 from raw_segment where unit_id = :id and delta_base_unit_id is not null"
                " or delta_base_unit_id = :id",
                file.unit_id,
            ),
        )
    )
    return chunk, segment


def _choose_base(db: sqlite3.Connection, file: _File, shared_counts: dict[int, float]) -> _File | None:
    """Return the base with the fewest bases of its own among those that share about the maximum."""
    candidates: list[tuple[int, float, _File]] = []
    for fragment_id, count in shared_counts.items():
        is_enough = count >= file.message_count * _MIN_SHARED_FRACTION
        base = _single_session_file(db, fragment_id) if is_enough else None
        if base is not None and base.unit_id != file.unit_id:
            depth = _depth(db, fragment_id)
            if depth < _MAX_DEPTH:
                candidates.append((depth, -count, base))
    max_count = max((-count for _, count, _ in candidates), default=0)
    min_count = max_count - file.message_count * _DEPTH_TOLERANCE
    best = [candidate for candidate in candidates if -candidate[1] >= min_count]
    return min(best)[-1] if best else None


def _depth(db: sqlite3.Connection, fragment_id: int) -> int:
    """Return the length of the chain of bases, at most one more than `_MAX_DEPTH`."""
    depth = 0
    while depth <= _MAX_DEPTH:
        row = db.execute(
            "select delta_base_fragment_id from message_chunk where fragment_id = ?"
            " and delta_base_fragment_id is not null limit 1",
            [fragment_id],
        ).fetchone()
        if row is None:
            return depth
        fragment_id, depth = row[0], depth + 1
    return depth


def _rebase_chunks(db: sqlite3.Connection, file: _File, base: _File) -> None:
    pairs = _matching_positions(db, file.fragment_id, base.fragment_id)
    positions = [position for position, _ in pairs]
    starts = _chunk_positions(db, base.fragment_id)
    reader = BodyReader(db)
    rows = db.execute(
        "select rowid, position from message_chunk where fragment_id = ? order by position",
        [file.fragment_id],
    ).fetchall()
    ends = [position for _, position in rows[1:]] + [file.message_count]
    deltas: list[tuple[int, int, bytes]] = []
    for (row, first), end in zip(rows, ends, strict=True):
        matches = [match for _, match in pairs[bisect_left(positions, first) : bisect_left(positions, end)]]
        if not matches:
            continue
        low, high = _covering_chunks(starts, min(matches), max(matches))
        (body,) = db.execute("select body from message_chunk where rowid = ?", [row]).fetchone()
        data = reader.read_chunks(base.fragment_id, low, high)
        delta = _encode_delta_chunk(
            reader.decode(body), data, fragment_id=base.fragment_id, first=low, last=high
        )
        if len(delta) < len(body):
            deltas.append((row, first, delta))
    # Insert instead of update: a row that becomes smaller in place leaves the rest of its page empty.
    db.executemany("delete from message_chunk where rowid = ?", [(row,) for row, _, _ in deltas])
    db.executemany(
        "insert into message_chunk (fragment_id, position, body, delta_base_fragment_id) values (?, ?, ?, ?)",
        [(file.fragment_id, first, delta, base.fragment_id) for _, first, delta in deltas],
    )


def _matching_positions(db: sqlite3.Connection, fragment_id: int, base_id: int) -> list[tuple[int, int]]:
    """Return positions of messages and of their equals in the base: same record or same response."""
    return sorted(
        db.execute(
            "select m.position, min(o.position) from message m cross join message o"
            " on o.record_hash = m.record_hash and o.fragment_id = :base where m.fragment_id = :fragment"
            " group by m.position"
            " union select m.position, min(o.position) from response r cross join response s"
            " on s.response_hash = r.response_hash and s.fragment_id = :base"
            " cross join message m indexed by message_record"
            " on m.record_hash = r.record_hash and m.fragment_id = r.fragment_id"
            " cross join message o indexed by message_record"
            " on o.record_hash = s.record_hash and o.fragment_id = s.fragment_id"
            " where r.fragment_id = :fragment group by m.position",
            {"fragment": fragment_id, "base": base_id},
        ).fetchall()
    )


def _chunk_positions(db: sqlite3.Connection, fragment_id: int) -> list[int]:
    query = "select position from message_chunk where fragment_id = ? order by position"
    return [position for (position,) in db.execute(query, [fragment_id])]


def _covering_chunks(starts: Sequence[int], low: int, high: int) -> tuple[int, int]:
    """Return the first and last chunk that contain these positions, limited to `_MAX_BASE_CHUNKS`."""
    first = max(0, bisect_right(starts, low) - 1)
    last = max(first, bisect_right(starts, high) - 1)
    return starts[first], starts[min(last, first + _MAX_BASE_CHUNKS - 1)]


def _rebase_segments(db: sqlite3.Connection, file: _File, base: _File) -> None:
    """Compress segments against the newest version of the base file, around the same offset."""
    version, size = db.execute(
        "select version, sum(size) from raw_segment where unit_id = ? group by version"
        " order by version desc limit 1",
        [base.unit_id],
    ).fetchone()
    reader = BodyReader(db)
    query = "select rowid, offset from raw_segment where unit_id = ?"
    for row, offset in db.execute(query, [file.unit_id]).fetchall():
        query = "select delta_base_fragment_id, body from raw_segment where rowid = ?"
        fragment_id, body = db.execute(query, [row]).fetchone()
        start = max(0, min(offset, size - _BASE_BYTES_AFTER) - _BASE_BYTES_BEFORE)
        data = reader.read_file_range(base.unit_id, version, start, offset + _BASE_BYTES_AFTER - start)
        delta = _encode_delta_segment(
            reader.decode_segment(None, fragment_id, body), data, version=version, offset=start
        )
        if len(delta) < len(body):
            query = (
                "update raw_segment set delta_base_unit_id = ?, delta_base_fragment_id = null, body = ?"
                " where rowid = ?"
            )
            db.execute(query, [base.unit_id, delta, row])
