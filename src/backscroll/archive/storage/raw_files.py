"""Original files, stored by segment so that they can be restored byte for byte."""

import sqlite3
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from backscroll.archive.errors import decode_errors
from backscroll.archive.storage.delta import BodyReader, rebase_unit_dependents
from backscroll.archive.storage.delta_raw import RawDeltaBase
from backscroll.errors import ArchiveError, DestinationError

__all__ = ["SEGMENT_BYTES", "read_file", "store_file", "write_file"]

SEGMENT_BYTES = 2 * 1024 * 1024  # compressing a segment takes several times as much memory


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
