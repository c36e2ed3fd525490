"""Originals, kept so that a file can be written back byte for byte."""

import sqlite3
import sys
from hashlib import sha256
from pathlib import Path

from backscroll.archive.errors import decode_errors
from backscroll.archive.storage.delta import BodyReader, rebase_unit_dependents
from backscroll.archive.storage.delta_raw import RawDeltaBase
from backscroll.errors import ArchiveError, DestinationError

__all__ = ["SEGMENT_BYTES", "store_file", "write_file"]

SEGMENT_BYTES = 2 * 1024 * 1024  # bytes; with what it leans on, a process holds several times as many


def store_file(
    db: sqlite3.Connection,
    unit: int,
    path: Path,
    told: RawDeltaBase,
    *,
    is_new: bool,
    is_appended: bool,
    end: int = sys.maxsize,
    whole: bytes = b"",
) -> bytes:
    """Keep a file, or what was added to it. One that was rewritten keeps its former state beside the new.

    It leans on what was told of it. What was written behind ``end`` since the file was looked at is left for
    the next time. ``whole`` is a new file up to there, where somebody has it in hand. Returns a new file that
    is no larger than one segment, and nothing of others.
    """
    if 0 < len(whole) < SEGMENT_BYTES:
        _keep_segment(db, unit, told, whole)
        return whole
    state, segments = (0, []) if is_new else _last_kept(db, unit)
    kept = sum(size for size, _ in segments)
    if is_appended and kept < _read_until(db, unit):
        return b""  # something that was read of it before was not to be kept
    with path.open("rb") as file:
        if is_appended and segments:
            # The last line may have been torn when it was kept, and be another one now.
            size, digest = segments[-1]
            file.seek(kept - size)
            if sha256(file.read(size)).digest() != digest:
                kept -= size
                rebase_unit_dependents(db, unit, offset=kept)
                query = "delete from raw_segment where unit_id = ? and version = ? and offset = ?"
                db.execute(query, [unit, state, kept])
        elif any(sha256(file.read(size)).digest() != digest for size, digest in segments):
            state, kept = state + 1, 0
        file.seek(kept)
        line = told.first_line if kept else 1
        whole = b""
        while data := file.read(max(0, min(SEGMENT_BYTES, end - kept))):
            lines = (
                data.count(b"\n") if len(data) == SEGMENT_BYTES else None
            )  # only a whole one is not the last
            _keep_segment(db, unit, told, data, offset=kept, state=state, line=line, lines=lines)
            if is_new and not kept and lines is None:
                whole = data
            kept += len(data)
            line += lines or 0
    return whole


def _keep_segment(
    db: sqlite3.Connection,
    unit: int,
    told: RawDeltaBase,
    data: bytes,
    *,
    offset: int = 0,
    state: int = 0,
    line: int = 1,
    lines: int | None = None,
) -> None:
    """Keep a piece of a file, which begins in a line and has so many of them or all that are left."""
    account, body = told.encode_segment(data, line, lines)
    db.execute(
        "insert into raw_segment (unit_id, offset, size, sha256, version, delta_base_fragment_id, body)"
        " values (?, ?, ?, ?, ?, ?, ?)",
        [unit, offset, len(data), sha256(data).digest(), state, account, body],
    )


def _last_kept(db: sqlite3.Connection, unit: int) -> tuple[int, list[tuple[int, bytes]]]:
    """The last state of a file, and the size and digest of each of its segments."""
    query = "select coalesce(max(version), 0) from raw_segment where unit_id = ?"
    (state,) = db.execute(query, [unit]).fetchone()
    query = "select size, sha256 from raw_segment where unit_id = ? and version = ? order by offset"
    segments = db.execute(query, [unit, state]).fetchall()
    return state, segments


def _read_until(db: sqlite3.Connection, unit: int) -> int:
    """Where the last reading of a file ended."""
    row = db.execute("select checkpoint_offset from unit where id = ?", [unit]).fetchone()
    return int(row[0] or 0)


def write_file(db: sqlite3.Connection, unit: int, target: Path) -> int:
    """Write a file as it was last seen. Returns its size; the bytes are checked on the way."""
    rows = db.execute(
        "select offset, sha256, delta_base_unit_id, delta_base_fragment_id, body from raw_segment"
        " where unit_id = :unit and version = (select max(version) from raw_segment where unit_id = :unit)"
        " order by offset",
        {"unit": unit},
    )
    size = 0
    try:
        file = target.open("xb")
    except FileExistsError as error:
        raise DestinationError(f"{target} exists; name another folder", target) from error
    with file:
        plain = BodyReader(db)
        for offset, digest, *kept in rows:
            damaged = ArchiveError(f"the kept original of {target.name} is damaged at byte {offset}", target)
            try:
                data = plain.decode_segment(*kept)
            except decode_errors() as error:
                raise damaged from error
            if sha256(data).digest() != digest or offset != size:
                raise damaged
            file.write(data)
            size += len(data)
    return size
