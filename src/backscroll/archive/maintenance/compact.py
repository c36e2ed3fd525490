"""Reduce the size of the archive file and overwrite deleted data."""

import sqlite3
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from backscroll.archive.connection import transaction
from backscroll.archive.storage.codec import compress
from backscroll.archive.storage.delta import BodyReader
from backscroll.archive.storage.raw_files import SEGMENT_BYTES, delta_compress_file
from backscroll.archive.storage.raw_rows import merge_small_chunks
from backscroll.errors import ArchiveError


class CompactResult(Struct):
    """Sizes before and after."""

    before: int  # bytes
    after: int
    merged: int  # by how many the number of segments and chunks shrank

    @property
    def saved(self) -> int:
        return self.before - self.after


def compact(db: sqlite3.Connection, path: Path) -> CompactResult:
    """Merge small segments and chunks of originals, and return free pages to the file system."""
    before = _file_bytes(path)
    rows = db.execute(
        "select unit_id, version from raw_segment group by unit_id, version"
        " having count(*) > 1 + sum(size) / ?",
        [SEGMENT_BYTES],
    ).fetchall()
    try:
        merged = sum(_merge_segments(db, path, unit_id, version) for unit_id, version in rows)
        _delta_compress(db)
        with transaction(db):
            merged += merge_small_chunks(db)
        vacuum(db)
    except sqlite3.OperationalError as error:  # the disk is full, or another process holds the lock
        raise ArchiveError(
            f"The archive {path} could not be compacted: {error}. It is intact.", path
        ) from error
    return CompactResult(before, _file_bytes(path), merged)


def _delta_compress(db: sqlite3.Connection) -> None:
    """Delta-compress originals that have no base."""
    units = db.execute(
        "select distinct unit_id from raw_segment"
        " where delta_base_unit_id is null and delta_base_fragment_id is null"
    ).fetchall()
    for (unit_id,) in units:
        with transaction(db):
            delta_compress_file(db, unit_id)


def _file_bytes(path: Path) -> int:
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _merge_segments(db: sqlite3.Connection, path: Path, unit_id: int, version: int) -> int:
    """Merge the segments of a file. Return by how many their number shrank."""
    with transaction(db):
        rows = db.execute(
            "select rowid, offset, size, delta_base_unit_id from raw_segment where unit_id = ?"
            " and version = ? order by offset",
            [unit_id, version],
        ).fetchall()
        reader = BodyReader(db)
        pending = bytearray()
        start = written = 0
        for row, offset, size, base_unit_id in rows:
            if base_unit_id is not None:  # repeats another file and stays as it is
                if pending:
                    _insert_segment(db, unit_id, version, start, bytes(pending))
                    written += 1
                    pending.clear()
                start = offset + size
                written += 1
                continue
            query = "select sha256, delta_base_fragment_id, body from raw_segment where rowid = ?"
            digest, base_fragment_id, body = db.execute(query, [row]).fetchone()
            data = reader.decode_segment(None, base_fragment_id, body)
            if sha256(data).digest() != digest:
                raise ArchiveError(
                    "An archived original is damaged. Run 'backscroll archive verify' to see which one.", path
                )
            db.execute("delete from raw_segment where rowid = ?", [row])
            pending += data
            while len(pending) >= SEGMENT_BYTES:
                start = _insert_segment(db, unit_id, version, start, bytes(pending[:SEGMENT_BYTES]))
                del pending[:SEGMENT_BYTES]
                written += 1
        if pending:
            _insert_segment(db, unit_id, version, start, bytes(pending))
            written += 1
    return len(rows) - written


def _insert_segment(db: sqlite3.Connection, unit_id: int, version: int, start: int, data: bytes) -> int:
    """Insert a segment and return its end."""
    db.execute(
        "insert into raw_segment (unit_id, offset, size, sha256, version, body) values (?, ?, ?, ?, ?, ?)",
        [unit_id, start, len(data), sha256(data).digest(), version, compress(data)],
    )
    return start + len(data)


def incremental_vacuum(db: sqlite3.Connection) -> None:
    """Return free pages to the file system."""
    db.executescript("pragma incremental_vacuum")  # `execute` would stop after the first page


def vacuum(db: sqlite3.Connection) -> bool:
    """Rewrite the file without free pages, so that it contains no deleted data.

    Return False if a reader keeps old pages in the write-ahead log.
    """
    db.execute("pragma auto_vacuum = incremental")
    db.execute("pragma temp_store = file")  # the temporary copy may be larger than memory
    try:
        db.execute("vacuum")
    finally:
        db.execute("pragma temp_store = memory")
    return not db.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
