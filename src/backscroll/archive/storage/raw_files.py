"""Original files, stored by segment so that they can be restored byte for byte."""

import sqlite3
import sys
from bisect import bisect_right
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from backscroll.archive.connection import decode_errors
from backscroll.archive.storage.codec import Chunk, compress
from backscroll.archive.storage.delta import BodyReader, encode_message_delta, rebase_unit_dependents
from backscroll.errors import ArchiveError, DestinationError
from backscroll.model.message import Message

SEGMENT_BYTES = 2 * 1024 * 1024  # compressing a segment takes several times as much memory
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


def store_file(
    db: sqlite3.Connection,
    unit_id: int,
    path: Path,
    base: RawDeltaBase,
    *,
    is_new: bool,
    is_appended: bool,
    end: int = sys.maxsize,
    content: bytes = b"",
) -> bytes:
    """Store a file, or what was appended to it. A rewritten file is stored as a new version.

    Bytes after ``end``, written since the file was listed, are read by the next sync. ``content`` is a new
    file up to there, if the caller has read it. Return the content of a new file that fits into one segment;
    nothing otherwise.
    """
    if 0 < len(content) < SEGMENT_BYTES:
        _store_segment(db, unit_id, base, content)
        return content
    version, segments = (0, []) if is_new else _last_version(db, unit_id)
    stored = sum(size for size, _ in segments)
    if is_appended and stored < _checkpoint_offset(db, unit_id):
        return b""  # an earlier part was excluded from storage
    with path.open("rb") as file:
        if is_appended and segments:
            # The last line may have been incomplete when it was stored.
            size, digest = segments[-1]
            file.seek(stored - size)
            if sha256(file.read(size)).digest() != digest:
                stored -= size
                rebase_unit_dependents(db, unit_id, offset=stored)
                query = "delete from raw_segment where unit_id = ? and version = ? and offset = ?"
                db.execute(query, [unit_id, version, stored])
        elif any(sha256(file.read(size)).digest() != digest for size, digest in segments):
            version, stored = version + 1, 0
        file.seek(stored)
        line = base.first_line if stored else 1
        content = b""
        while data := file.read(max(0, min(SEGMENT_BYTES, end - stored))):
            is_last = len(data) < SEGMENT_BYTES
            line_count = None if is_last else data.count(b"\n")
            _store_segment(
                db, unit_id, base, data, offset=stored, version=version, line=line, line_count=line_count
            )
            if is_new and not stored and is_last:
                content = data
            stored += len(data)
            line += line_count or 0
    return content


def _store_segment(
    db: sqlite3.Connection,
    unit_id: int,
    base: RawDeltaBase,
    data: bytes,
    *,
    offset: int = 0,
    version: int = 0,
    line: int = 1,
    line_count: int | None = None,
) -> None:
    """Store a segment that starts in ``line`` and has ``line_count`` lines; None: all remaining."""
    fragment_id, body = base.encode_segment(data, line, line_count)
    db.execute(
        "insert into raw_segment (unit_id, offset, size, sha256, version, delta_base_fragment_id, body)"
        " values (?, ?, ?, ?, ?, ?, ?)",
        [unit_id, offset, len(data), sha256(data).digest(), version, fragment_id, body],
    )


def _last_version(db: sqlite3.Connection, unit_id: int) -> tuple[int, list[tuple[int, bytes]]]:
    """Return the newest version of a file, and the size and SHA-256 of each of its segments."""
    query = "select coalesce(max(version), 0) from raw_segment where unit_id = ?"
    (version,) = db.execute(query, [unit_id]).fetchone()
    query = "select size, sha256 from raw_segment where unit_id = ? and version = ? order by offset"
    segments = db.execute(query, [unit_id, version]).fetchall()
    return version, segments


def _checkpoint_offset(db: sqlite3.Connection, unit_id: int) -> int:
    row = db.execute("select checkpoint_offset from unit where id = ?", [unit_id]).fetchone()
    return int(row[0] or 0)


def read_file(db: sqlite3.Connection, unit_id: int, path: Path) -> Iterator[bytes]:
    """Read the newest version of a file in blocks and verify their hashes. ``path`` is for errors."""
    rows = db.execute(
        "select offset, sha256, delta_base_unit_id, delta_base_fragment_id, body from raw_segment"
        " where unit_id = :unit and version = (select max(version) from raw_segment where unit_id = :unit)"
        " order by offset",
        {"unit": unit_id},
    )
    size = 0
    reader = BodyReader(db)
    for offset, digest, *stored in rows:
        damaged = ArchiveError(f"The archived original of {path.name} is damaged at byte {offset}.", path)
        try:
            data = reader.decode_segment(*stored)
        except decode_errors() as error:
            raise damaged from error
        if sha256(data).digest() != digest or offset != size:
            raise damaged
        yield data
        size += len(data)


def write_file(db: sqlite3.Connection, unit_id: int, target: Path) -> int:
    """Write the newest version of a file, verify its hashes, and return its size."""
    try:
        file = target.open("xb")
    except FileExistsError as error:
        raise DestinationError(f"{target} exists. Choose another folder.", target) from error
    with file:
        return sum(file.write(data) for data in read_file(db, unit_id, target))


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
