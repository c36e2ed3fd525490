"""Compress an original file against the messages read from it, which contain most of its text."""

import sqlite3
from bisect import bisect_right

from backscroll.archive.storage.codec import Chunk, compress
from backscroll.archive.storage.delta import BodyReader, encode_message_delta
from backscroll.model import Message

__all__ = ["RawDeltaBase", "delta_compress_file"]

_MAX_BASE_BYTES = 2 * 1024 * 1024  # of messages, per segment
_LINE_PREFIX = "line "  # of `Origin.place`
_JSONL_SUFFIX = ".jsonl"


class RawDeltaBase:
    """The chunks written while a file is read, as delta bases for its segments."""

    def __init__(self, db: sqlite3.Connection, path: str) -> None:
        self._db = db
        self._is_jsonl = path.endswith(_JSONL_SUFFIX)
        self._reader = BodyReader(db, max_cache_bytes=2 * _MAX_BASE_BYTES)
        self._fragment_ids: set[int] = set()
        self._positions: list[int] = []
        self._lines: list[int] = []  # line of the file where each chunk starts
        self._sizes: list[int] = []
        self._last_base: tuple[tuple[int, int], bytes] | None = None  # positions and data

    def add_chunk(self, fragment_id: int, position: int, first: Message, data: bytes) -> None:
        """Add a chunk that was written. `first` is its first message, `data` its decompressed body."""
        if not first.origin.place.startswith(_LINE_PREFIX):
            return
        self._fragment_ids.add(fragment_id)
        self._positions.append(position)
        self._lines.append(int(first.origin.place.removeprefix(_LINE_PREFIX)))
        self._sizes.append(len(data))
        self._reader.cache((fragment_id, position), data)

    def encode_segment(self, data: bytes, line: int, line_count: int | None) -> tuple[int | None, bytes]:
        """Return the delta base and the body of a segment.

        The segment starts in ``line`` and has ``line_count`` lines; None: all remaining.
        """
        fragment_id = self._fragment_id()
        if fragment_id is None:
            return None, compress(data)
        begin = max(0, bisect_right(self._lines, line) - 1)
        end = len(self._lines) if line_count is None else bisect_right(self._lines, line + line_count)
        first, last = self._chunk_range(begin, end)
        messages = self._read_base(fragment_id, first, last)
        return fragment_id, encode_message_delta(
            data, messages, first=first, last=last, is_jsonl=self._is_jsonl
        )

    def encode_checkpoint(self, state: bytes) -> bytes:
        """Return the body of a checkpoint state. It consists mostly of ids of messages."""
        fragment_id = self._fragment_id()
        if fragment_id is None:
            return compress(state)
        first, last = self._chunk_range(0, len(self._positions))
        messages = self._read_base(fragment_id, first, last)
        return encode_message_delta(state, messages, first=first, last=last)

    def _read_base(self, fragment_id: int, first: int, last: int) -> bytes:
        if self._last_base is None or self._last_base[0] != (first, last):
            self._last_base = (first, last), self._reader.read_chunks(fragment_id, first, last)
        return self._last_base[1]

    def _fragment_id(self) -> int | None:
        """Return the only fragment of the file; None if there are several, as in a log of prompts."""
        if len(self._fragment_ids) != 1:
            return None
        (fragment_id,) = self._fragment_ids
        if self._last_base is not None:
            return fragment_id
        # A fragment that turns out to be unchanged is deleted again.
        found = self._db.execute("select 1 from fragment where id = ?", [fragment_id]).fetchone()
        return fragment_id if found is not None else None

    def _chunk_range(self, begin: int, end: int) -> tuple[int, int]:
        """Return the positions of the first and last of these chunks, limited to `_MAX_BASE_BYTES`."""
        last, size = begin, self._sizes[begin]
        while last + 1 < end and size + self._sizes[last + 1] <= _MAX_BASE_BYTES:
            last += 1
            size += self._sizes[last]
        return self._positions[begin], self._positions[last]

    @property
    def first_line(self) -> int:
        """Line of the first message."""
        return self._lines[0] if self._lines else 0


def _stored_base(db: sqlite3.Connection, unit_id: int) -> RawDeltaBase:
    """Return the stored messages of a file, without those of superseded fragments."""
    (path,) = db.execute("select path from unit where id = ?", [unit_id]).fetchone()
    base = RawDeltaBase(db, path)
    rows = db.execute(
        "select c.fragment_id, c.position, c.body from fragment f"
        " join message_chunk c on c.fragment_id = f.id"
        " where f.unit_id = ? and f.status = 'current' order by c.fragment_id, c.position",
        [unit_id],
    )
    reader = BodyReader(db)
    for fragment_id, position, body in rows:
        data = reader.decode(body)
        base.add_chunk(fragment_id, position, Chunk(data).message(0), data)
    return base


def delta_compress_file(db: sqlite3.Connection, unit_id: int) -> None:
    """Compress the segments of a file that have no base against its messages, after it was parsed again."""
    base, reader = _stored_base(db, unit_id), BodyReader(db)
    line = 1
    rows = db.execute(
        "select rowid, delta_base_unit_id, delta_base_fragment_id from raw_segment"
        " where unit_id = :unit and version = (select max(version) from raw_segment where unit_id = :unit)"
        " order by offset",
        {"unit": unit_id},
    )
    for row, base_unit_id, base_fragment_id in rows.fetchall():
        (body,) = db.execute("select body from raw_segment where rowid = ?", [row]).fetchone()
        data = reader.decode_segment(base_unit_id, base_fragment_id, body)
        line_count = data.count(b"\n")
        if base_unit_id is None and base_fragment_id is None:
            fragment_id, delta = base.encode_segment(data, line, line_count)
            if len(delta) < len(body):
                query = "update raw_segment set delta_base_fragment_id = ?, body = ? where rowid = ?"
                db.execute(query, [fragment_id, delta, row])
        line += line_count
