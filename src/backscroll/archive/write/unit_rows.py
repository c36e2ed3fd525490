"""Rows of the table `unit`: fingerprint, checkpoint, record counts and events of a unit."""

import os
import sqlite3
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import msgspec

from backscroll.archive.connection import now_ms
from backscroll.archive.storage.codec import compress
from backscroll.archive.storage.delta import read_checkpoint_state
from backscroll.archive.storage.raw_files import RawDeltaBase
from backscroll.model.problem import Problem
from backscroll.model.store import Unit
from backscroll.model.stream import Checkpoint, RecordCounts

PREFIX_HASH_BYTES = 16
HASHED_BYTES = 4096  # at the start of a file and before the checkpoint
FILES_WITHOUT_WAL = (".jsonl", ".txt", ".json")
TRUNCATED_LINE_KIND = "(unreadable)"  # the kind that a truncated line is counted as


class KnownUnit(msgspec.Struct):
    """A unit as stored in the archive."""

    id: int
    fingerprint: str
    size: int
    is_gone: bool
    needs_retry: bool  # it could not be read, and is read again even if its fingerprint is unchanged
    prefix_hash: bytes  # detects that the file was rewritten
    excluded_by: bytes | None = None  # hash of the patterns that excluded part of the unit

    def is_current(self, fingerprint: str) -> bool:
        """Return whether a unit with this fingerprint has nothing new."""
        return not self.is_gone and not self.needs_retry and self.fingerprint == fingerprint


def load_checkpoint(db: sqlite3.Connection, unit_id: int) -> Checkpoint | None:
    """Return how far a unit was read; None if it must be read from the start."""
    row = db.execute(
        "select checkpoint_offset, checkpoint_line, checkpoint_state from unit where id = ?", [unit_id]
    ).fetchone()
    if row is None or row[0] is None:
        return None
    state = read_checkpoint_state(db, unit_id, row[2])
    return Checkpoint(row[0], row[1], state) if state is not None else None


def register_unit(db: sqlite3.Connection, unit: Unit, platform: str) -> tuple[int, bool]:
    """Return the id of a unit and whether it is new."""
    cursor = db.execute(
        "insert into unit (source, platform, root, path, key, kind, fingerprint, size)"
        " values (?, ?, ?, ?, ?, ?, '', 0) on conflict do nothing",
        [unit.source, platform, unit.root, unit.path, unit.key, unit.kind],
    )
    if cursor.rowcount:
        assert cursor.lastrowid is not None
        return cursor.lastrowid, True
    row = db.execute("select id from unit where path = ? and key = ?", [unit.path, unit.key]).fetchone()
    return int(row[0]), False


def set_excluded(db: sqlite3.Connection, unit_id: int, patterns_hash: bytes | None) -> None:
    """Store the hash of the patterns that excluded part of a unit; None if nothing was excluded."""
    db.execute("delete from excluded_unit where unit_id = ?", [unit_id])
    if patterns_hash is not None:
        db.execute("insert into excluded_unit values (?, ?)", [unit_id, patterns_hash])


def mark_superseded(db: sqlite3.Connection, unit_id: int) -> None:
    """Prepare a unit for being read from the start: its current fragments become superseded.

    They are pending instead if an unchanged fragment may become current again. That is not possible if the
    unit has title hints or subagent evidence, because those may concern other sessions.
    """
    db.execute(
        "update fragment set status = iif(exists (select 1 from title_hint where unit_id = :unit)"
        "  or exists (select 1 from subagent_evidence where unit_id = :unit), 'superseded', 'pending')"
        " where unit_id = :unit and status = 'current'",
        {"unit": unit_id},
    )
    for table in ("subagent_evidence", "problem"):
        db.execute(f"delete from {table} where unit_id = ?", [unit_id])  # noqa: S608 - names are ours


def discard_truncated_line(db: sqlite3.Connection, unit_id: int) -> None:
    """Prepare a unit for being read on: a truncated last line is read again and not counted twice."""
    truncated = db.execute(
        "delete from problem where unit_id = ? and code = 'truncated-line'", [unit_id]
    ).rowcount
    if truncated:
        counts = _load_counts(db, unit_id)
        counts.records -= truncated
        counts.problems -= truncated
        counts.kinds[TRUNCATED_LINE_KIND] = counts.kinds.get(TRUNCATED_LINE_KIND, truncated) - truncated
        if not counts.kinds[TRUNCATED_LINE_KIND]:
            del counts.kinds[TRUNCATED_LINE_KIND]
        db.execute("update unit set record_counts = ? where id = ?", [_encode_counts(counts), unit_id])


def _load_counts(db: sqlite3.Connection, unit_id: int) -> RecordCounts:
    (counts,) = db.execute("select record_counts from unit where id = ?", [unit_id]).fetchone()
    return msgspec.json.decode(counts, type=RecordCounts)


def mark_for_retry(db: sqlite3.Connection, unit_id: int, problems: Iterable[Problem]) -> None:
    """Record that a unit could not be read this time, and why."""
    db.execute("update unit set needs_retry = 1 where id = ?", [unit_id])
    db.execute("delete from problem where unit_id = ?", [unit_id])
    rows = [
        (unit_id, problem.code, problem.origin.path, problem.origin.place, problem.reason)
        for problem in problems
    ]
    db.executemany("insert into problem values (?, ?, ?, ?, ?)", rows)


def save_unit(
    db: sqlite3.Connection,
    unit_id: int,
    unit: Unit,
    counts: RecordCounts,
    *,
    event: str,
    is_appended: bool = False,
    needs_retry: bool = False,
    delta_base: RawDeltaBase | None = None,
    content: bytes = b"",
) -> None:
    """Record that a unit was read, as the last step of its transaction.

    `delta_base` contains the messages read from it. `content` is the file, if the caller has it in memory.
    """
    checkpoint = counts.checkpoint
    status = stat_or_none(unit.path)
    if is_appended:
        counts = _load_counts(db, unit_id).plus(counts)
    prefix = _identified_prefix_hash(unit.path, checkpoint.offset, content, status) if checkpoint else None
    # A file that grew will grow again: its state gets no delta base, so that appending stays fast.
    encode = delta_base.encode_checkpoint if delta_base is not None and not is_appended else compress
    db.execute(
        "update unit set kind = ?, fingerprint = ?, size = ?, modified_at = ?, read_at = ?, is_gone = 0,"
        " needs_retry = ?, checkpoint_offset = ?, checkpoint_line = ?, checkpoint_state = ?,"
        " prefix_hash = ?, record_counts = ?, folder_maps = iif(?, folder_maps, null),"
        " folder_moves = null where id = ?",
        [
            unit.kind,
            unit.fingerprint,
            unit.size,
            _modified_at(unit.path, status),
            now_ms(),
            needs_retry,
            checkpoint.offset if checkpoint else None,
            checkpoint.line if checkpoint else None,
            encode(checkpoint.state) if checkpoint else None,
            prefix,
            _encode_counts(counts),
            is_appended,
            unit_id,
        ],
    )
    add_event(db, unit_id, event)


def save_reparsed_unit(db: sqlite3.Connection, unit_id: int, counts: RecordCounts, file: Path) -> None:
    """Record that a unit's stored original was parsed again. The unit itself was not looked at."""
    checkpoint = counts.checkpoint
    prefix = None
    if checkpoint:
        # `file` may be a copy, so the identity of the file that was read in place is kept.
        (before,) = db.execute("select prefix_hash from unit where id = ?", [unit_id]).fetchone()
        prefix = prefix_hash(file, checkpoint.offset) + (before or b"")[PREFIX_HASH_BYTES:]
    db.execute(
        "update unit set checkpoint_offset = ?, checkpoint_line = ?, checkpoint_state = ?, prefix_hash = ?,"
        " record_counts = ? where id = ?",
        [
            checkpoint.offset if checkpoint else None,
            checkpoint.line if checkpoint else None,
            compress(checkpoint.state) if checkpoint else None,
            prefix,
            _encode_counts(counts),
            unit_id,
        ],
    )
    add_event(db, unit_id, "reparsed")


def add_event(db: sqlite3.Connection, unit_id: int, code: str) -> None:
    """Add an event to the log of a unit."""
    db.execute("insert into source_event (unit_id, at, code) values (?, ?, ?)", [unit_id, now_ms(), code])


def stat_or_none(path: str) -> os.stat_result | None:
    """Return the status of a file; None if it does not exist."""
    try:
        return os.stat(path)  # noqa: PTH116 - called for every unit
    except OSError:
        return None


def _modified_at(path: str, status: os.stat_result | None) -> int | None:
    """Return when a file, or the write-ahead log of a database, was last modified, in milliseconds."""
    wal = stat_or_none(f"{path}-wal") if not path.endswith(FILES_WITHOUT_WAL) else None
    newest = max((found.st_mtime_ns for found in (status, wal) if found is not None), default=None)
    return newest // 1_000_000 if newest is not None else None


def _encode_counts(counts: RecordCounts) -> str:
    stored = {
        "records": counts.records,
        "parsed": counts.parsed,
        "ignored": counts.ignored,
        "problems": counts.problems,
        "kinds": counts.kinds,
        "unknown": counts.unknown,
    }
    return msgspec.json.encode(stored).decode()


def prefix_hash(path: Path, offset: int) -> bytes:
    """Return a hash of the start of a file and of the data before an offset, to detect a rewrite."""
    with path.open("rb") as file:
        begin = end = file.read(min(HASHED_BYTES, offset))
        if offset > HASHED_BYTES:
            file.seek(offset - HASHED_BYTES)
            end = file.read(HASHED_BYTES)
    return _hash(begin, end)


def _hash(begin: bytes, end: bytes) -> bytes:
    return blake2b(begin + end, digest_size=PREFIX_HASH_BYTES).digest()


def _identified_prefix_hash(
    path: str, offset: int, content: bytes = b"", status: os.stat_result | None = None
) -> bytes:
    """Return the prefix hash and the inode: a file that was replaced may differ between the hashed parts.

    `content` and `status` are those of the file, if the caller has them.
    """
    if offset <= len(content):
        prefix = _hash(content[: min(HASHED_BYTES, offset)], content[max(0, offset - HASHED_BYTES) : offset])
    else:
        prefix = prefix_hash(Path(path), offset)
    inode = (status or os.stat(path)).st_ino  # noqa: PTH116 - called for every unit
    return prefix + inode.to_bytes(16, "big")


def is_prefix_unchanged(known: KnownUnit, path: Path, offset: int) -> bool:
    """Return whether a file is the one that was read and is unchanged up to an offset."""
    now = _identified_prefix_hash(str(path), offset)
    if len(known.prefix_hash) == PREFIX_HASH_BYTES:  # stored without the inode
        return now.startswith(known.prefix_hash)
    return now == known.prefix_hash
