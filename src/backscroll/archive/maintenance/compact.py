"""The archive's file made as small as it can be, with nothing left in it of what was deleted."""

import sqlite3
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from backscroll.archive.connection import transaction
from backscroll.archive.storage.blob_store import merge_small_chunks
from backscroll.archive.storage.codec import compress
from backscroll.archive.storage.delta import BodyReader
from backscroll.archive.storage.delta_raw import delta_compress_file
from backscroll.archive.storage.raw_files import SEGMENT_BYTES
from backscroll.errors import ArchiveError

__all__ = ["CompactResult", "compact", "incremental_vacuum", "vacuum"]


class CompactResult(Struct):
    """What was gained."""

    before: int  # bytes
    after: int
    merged: int  # pieces of originals that were put together with others

    @property
    def saved(self) -> int:
        return self.before - self.after


def compact(db: sqlite3.Connection, path: Path) -> CompactResult:
    """Put originals together that were kept piece by piece as they grew, and give back free space."""
    before = _size(path)
    rows = db.execute(
        "select unit_id, version from raw_segment group by unit_id, version"
        " having count(*) > 1 + sum(size) / ?",
        [SEGMENT_BYTES],
    ).fetchall()
    try:
        merged = sum(_merge(db, path, unit, state) for unit, state in rows)
        _lean(db)
        with transaction(db):
            merged += merge_small_chunks(db)
        vacuum(db)
    except sqlite3.OperationalError as error:  # a full disk, or somebody who writes and does not end
        raise ArchiveError(f"the archive {path} is whole, but not smaller: {error}", path) from error
    return CompactResult(before, _size(path), merged)


def _lean(db: sqlite3.Connection) -> None:
    """Have originals lean on what was told of them that were kept before they could."""
    plain = db.execute(
        "select distinct unit_id from raw_segment"
        " where delta_base_unit_id is null and delta_base_fragment_id is null"
    ).fetchall()
    for (unit,) in plain:
        with transaction(db):
            delta_compress_file(db, unit)


def _size(path: Path) -> int:
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _merge(db: sqlite3.Connection, path: Path, unit: int, state: int) -> int:
    """One file's pieces in as few as can be; how many fewer there are."""
    with transaction(db):
        numbers = db.execute(
            "select rowid, offset, size, delta_base_unit_id from raw_segment where unit_id = ?"
            " and version = ? order by offset",
            [unit, state],
        ).fetchall()
        plain = BodyReader(db)
        pending = bytearray()
        start = written = 0
        for number, offset, size, base in numbers:
            if base is not None:  # it repeats another file, and stays as it is
                if pending:
                    _insert(db, unit, state, start, bytes(pending))
                    written += 1
                    pending.clear()
                start = offset + size
                written += 1
                continue
            query = "select sha256, delta_base_fragment_id, body from raw_segment where rowid = ?"
            digest, account, body = db.execute(query, [number]).fetchone()
            data = plain.decode_segment(None, account, body)
            if sha256(data).digest() != digest:
                raise ArchiveError("a kept original is damaged; backscroll archive verify names it", path)
            db.execute("delete from raw_segment where rowid = ?", [number])
            pending += data
            while len(pending) >= SEGMENT_BYTES:
                start = _insert(db, unit, state, start, bytes(pending[:SEGMENT_BYTES]))
                del pending[:SEGMENT_BYTES]
                written += 1
        if pending:
            _insert(db, unit, state, start, bytes(pending))
            written += 1
    return len(numbers) - written


def _insert(db: sqlite3.Connection, unit: int, state: int, start: int, data: bytes) -> int:
    db.execute(
        "insert into raw_segment (unit_id, offset, size, sha256, version, body) values (?, ?, ?, ?, ?, ?)",
        [unit, start, len(data), sha256(data).digest(), state, compress(data)],
    )
    return start + len(data)


def incremental_vacuum(db: sqlite3.Connection) -> None:
    """Make the file smaller by the pages that nothing is in.

    Archives of the first versions cannot do that until they have been compacted.
    """
    db.executescript("pragma incremental_vacuum")  # which `execute` would leave after the first page


def vacuum(db: sqlite3.Connection) -> bool:
    """Write the file anew with what is in it, and nothing of what was.

    False when somebody reads, so that the old bytes stay in the write-ahead log for a while.
    """
    db.execute("pragma auto_vacuum = incremental")
    db.execute("pragma temp_store = file")  # all of it is written there first, which may be more than memory
    try:
        db.execute("vacuum")
    finally:
        db.execute("pragma temp_store = memory")
    return not db.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
