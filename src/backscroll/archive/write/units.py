"""Units: what has been read, how far, and what became of it."""

import os
import sqlite3
import time
from collections.abc import Collection, Iterable
from hashlib import blake2b
from pathlib import Path

import msgspec

from backscroll.archive.storage.codec import compress
from backscroll.archive.storage.delta import state_in
from backscroll.archive.storage.delta_raw import Told
from backscroll.model import Checkpoint, Problem, RecordCounts, Unit

__all__ = [
    "KnownUnit",
    "exclude",
    "known_units",
    "mark_gone",
    "mark_of",
    "mend_tail",
    "prefix_of",
    "record",
    "record_again",
    "register",
    "retry",
    "set_aside",
    "status_of",
    "still_begins",
    "units_below",
]

_FEW = 500  # paths that are asked for one by one
_DIGEST = 16  # bytes
_PREFIX = 4096  # bytes, at each end of what was read
_WITHOUT_LOG = (".jsonl", ".txt", ".json")  # files that are no databases
_TORN = "(unreadable)"  # what a line that is cut off is counted as


class KnownUnit(msgspec.Struct):
    """A unit as the archive knows it."""

    number: int
    fingerprint: str
    size: int
    is_gone: bool
    is_retried: bool  # it could not be read, and is tried again whatever its fingerprint says
    prefix: bytes  # a digest of what was read, to notice a rewrite
    excluded_by: bytes | None = None  # a digest of the patterns for which something in it was passed over

    def is_current(self, fingerprint: str) -> bool:
        """Whether there is nothing new."""
        return not self.is_gone and not self.is_retried and self.fingerprint == fingerprint


def known_units(
    db: sqlite3.Connection, source: str, root: str, paths: Collection[str] | None = None
) -> dict[tuple[str, str], KnownUnit]:
    """Every unit ever read below a root, or only those at these paths, by path and key."""
    query = (
        "select path, key, id, fingerprint, size, is_gone, needs_retry, coalesce(prefix_hash, x''),"
        " patterns_hash from unit left join excluded_unit on unit_id = id where source = ? and root = ?"
    )
    if paths is None or len(paths) > _FEW:
        rows = db.execute(query, [source, root]).fetchall()
    else:
        rows = [row for path in paths for row in db.execute(f"{query} and path = ?", [source, root, path])]
    return {
        (path, key): KnownUnit(number, fingerprint, size, bool(gone), bool(retried), prefix, patterns)
        for path, key, number, fingerprint, size, gone, retried, prefix, patterns in rows
    }


def units_below(db: sqlite3.Connection, source: str, root: str, folder: str) -> set[str]:
    """The paths of the units that are there at a path or in the folder of that name."""
    query = "select distinct path from unit where source = ? and root = ? and not is_gone and path"
    own = db.execute(f"{query} = ?", [source, root, folder])
    below = [source, root, f"{folder}{os.sep}", f"{folder}{chr(ord(os.sep) + 1)}"]
    return {path for (path,) in (*own, *db.execute(f"{query} > ? and path < ?", below))}


def mark_of(db: sqlite3.Connection, number: int) -> Checkpoint | None:
    """How far a unit was read."""
    row = db.execute(
        "select checkpoint_offset, checkpoint_line, checkpoint_state from unit where id = ?", [number]
    ).fetchone()
    if row is None or row[0] is None:
        return None
    state = state_in(db, number, row[2])
    return Checkpoint(row[0], row[1], state) if state is not None else None


def register(db: sqlite3.Connection, unit: Unit, platform: str) -> tuple[int, bool]:
    """The unit's number, and whether it was never met before."""
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


def exclude(db: sqlite3.Connection, number: int, patterns: bytes | None) -> None:
    """Note for which patterns something in a unit was passed over; None when nothing was."""
    db.execute("delete from excluded_unit where unit_id = ?", [number])
    if patterns is not None:
        db.execute("insert into excluded_unit values (?, ?)", [number, patterns])


def set_aside(db: sqlite3.Connection, number: int) -> None:
    """Before a unit is told anew: what it told stays as a former state until it is known what is missing."""
    db.execute(
        "update fragment set status = iif(exists (select 1 from title_hint where unit_id = :unit)"
        "  or exists (select 1 from subagent_evidence where unit_id = :unit), 'superseded', 'pending')"
        " where unit_id = :unit and status = 'current'",
        {"unit": number},
    )
    for table in ("subagent_evidence", "problem"):
        db.execute(f"delete from {table} where unit_id = ?", [number])  # noqa: S608 - names are ours


def mend_tail(db: sqlite3.Connection, number: int) -> None:
    """Before more of a unit is told: a line that was cut off is read again, and not counted twice."""
    torn = db.execute("delete from problem where unit_id = ? and code = 'truncated-line'", [number]).rowcount
    if torn:
        counts = _earlier(db, number)
        counts.records -= torn
        counts.problems -= torn
        counts.kinds[_TORN] = counts.kinds.get(_TORN, torn) - torn
        if not counts.kinds[_TORN]:
            del counts.kinds[_TORN]
        db.execute("update unit set record_counts = ? where id = ?", [_counts(counts), number])


def _earlier(db: sqlite3.Connection, number: int) -> RecordCounts:
    """The account of a unit as it was last read."""
    (counts,) = db.execute("select record_counts from unit where id = ?", [number]).fetchone()
    return msgspec.json.decode(counts, type=RecordCounts)


def retry(db: sqlite3.Connection, number: int, problems: Iterable[Problem]) -> None:
    """Note that a unit could not be read this time, and why."""
    db.execute("update unit set needs_retry = 1 where id = ?", [number])
    db.execute("delete from problem where unit_id = ?", [number])
    rows = [(number, one.code, one.origin.path, one.origin.place, one.reason) for one in problems]
    db.executemany("insert into problem values (?, ?, ?, ?, ?)", rows)


def record(
    db: sqlite3.Connection,
    number: int,
    unit: Unit,
    tally: RecordCounts,
    *,
    event: str,
    is_appended: bool = False,
    is_retried: bool = False,
    told: Told | None = None,
    whole: bytes = b"",
) -> None:
    """Note that a unit was read, as the last step of its transaction.

    ``told`` is what was read of it, ``whole`` the file, where somebody has it in hand.
    """
    now = _now()
    mark = tally.mark
    status = status_of(unit.path)
    counts = _earlier(db, number).plus(tally) if is_appended else tally
    prefix = _beginning_of(unit.path, mark.offset, whole, status) if mark is not None else None
    # A file that grows goes on growing, and is not to be slowed down by what its state leans on.
    packed = told.state_of if told is not None and not is_appended else compress
    db.execute(
        "update unit set kind = ?, fingerprint = ?, size = ?, modified_at = ?, read_at = ?, is_gone = 0,"
        " needs_retry = ?, checkpoint_offset = ?, checkpoint_line = ?, checkpoint_state = ?,"
        " prefix_hash = ?, record_counts = ? where id = ?",
        [
            unit.kind,
            unit.fingerprint,
            unit.size,
            _modified_at(unit.path, status),
            now,
            is_retried,
            mark.offset if mark else None,
            mark.line if mark else None,
            packed(mark.state) if mark else None,
            prefix,
            _counts(counts),
            number,
        ],
    )
    db.execute("insert into source_event (unit_id, at, code) values (?, ?, ?)", [number, now, event])


def status_of(path: str) -> os.stat_result | None:
    """What the system tells of a file; None when it is not there."""
    try:
        return os.stat(path)  # noqa: PTH116 - for every unit that is read
    except OSError:
        return None


def _modified_at(path: str, status: os.stat_result | None) -> int | None:
    """When a file was last written to, a database's log included."""
    log = status_of(f"{path}-wal") if not path.endswith(_WITHOUT_LOG) else None
    newest = max((found.st_mtime_ns for found in (status, log) if found is not None), default=None)
    return newest // 1_000_000 if newest is not None else None


def record_again(db: sqlite3.Connection, number: int, tally: RecordCounts, file: Path) -> None:
    """Note that a unit's original was read once more; of the unit itself nothing new is known."""
    mark = tally.mark
    db.execute(
        "update unit set checkpoint_offset = ?, checkpoint_line = ?, checkpoint_state = ?, prefix_hash = ?,"
        " record_counts = ? where id = ?",
        [
            mark.offset if mark else None,
            mark.line if mark else None,
            compress(mark.state) if mark else None,
            prefix_of(file, mark.offset) + _which(db, number) if mark else None,
            _counts(tally),
            number,
        ],
    )
    now = _now()
    db.execute("insert into source_event (unit_id, at, code) values (?, ?, 'reparsed')", [number, now])


def _which(db: sqlite3.Connection, number: int) -> bytes:
    """Which file a unit was when it was last read in its place; what is read again may be a copy of it."""
    (prefix,) = db.execute("select prefix_hash from unit where id = ?", [number]).fetchone()
    return (prefix or b"")[_DIGEST:]


def _counts(tally: RecordCounts) -> str:
    counts = {
        "records": tally.records,
        "parsed": tally.parsed,
        "ignored": tally.ignored,
        "problems": tally.problems,
        "kinds": tally.kinds,
        "unknown": tally.unknown,
    }
    return msgspec.json.encode(counts).decode()


def prefix_of(path: Path, offset: int) -> bytes:
    """A digest of how a file begins and of what lies before an offset: enough to notice a rewrite."""
    with path.open("rb") as file:
        begin = end = file.read(min(_PREFIX, offset))
        if offset > _PREFIX:
            file.seek(offset - _PREFIX)
            end = file.read(_PREFIX)
    return _prefix(begin, end)


def _prefix(begin: bytes, end: bytes) -> bytes:
    return blake2b(begin + end, digest_size=_DIGEST).digest()


def _beginning_of(path: str, offset: int, whole: bytes = b"", status: os.stat_result | None = None) -> bytes:
    """The same, and which file it is: one that was replaced may differ in between.

    ``whole`` is the file, and ``status`` what it is like, where somebody has them in hand.
    """
    if offset <= len(whole):
        prefix = _prefix(whole[: min(_PREFIX, offset)], whole[max(0, offset - _PREFIX) : offset])
    else:
        prefix = prefix_of(Path(path), offset)
    inode = (status or os.stat(path)).st_ino  # noqa: PTH116 - for every unit that is read
    return prefix + inode.to_bytes(16, "big")


def still_begins(known: KnownUnit, path: Path, offset: int) -> bool:
    """Whether a file is the one that was read, and holds what was read up to an offset."""
    now = _beginning_of(str(path), offset)
    if len(known.prefix) == _DIGEST:  # of an archive that did not note which file it was
        return now.startswith(known.prefix)
    return now == known.prefix


def mark_gone(db: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Note that units are no longer where they were. What was read from them stays."""
    now = _now()
    for number in numbers:
        db.execute("update unit set is_gone = 1 where id = ?", [number])
        db.execute("update fragment set is_derived = 0 where unit_id = ?", [number])
        db.execute("insert into source_event (unit_id, at, code) values (?, ?, 'vanished')", [number, now])


def _now() -> int:
    return time.time_ns() // 1_000_000
