"""Choose delta bases for files that repeat another file: resumed and forked sessions."""

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from backscroll.archive.storage.delta import BodyReader, encode_delta_chunk, encode_delta_segment
from backscroll.archive.write.exclusions import SINGLE_SESSION_KINDS

__all__ = ["delta_compress_repeats"]

_MAX_DEPTH = 8  # bases of bases
_MIN_SHARED_FRACTION = 0.3  # of the messages; a smaller share saves too little
_DEPTH_TOLERANCE = 0.02  # a base with so much less in common is better if it has fewer bases itself
_MAX_BASE_CHUNKS = 6  # per chunk
_BASE_BYTES_BEFORE = 4 * 1024 * 1024  # range of the base file around the offset of a segment
_BASE_BYTES_AFTER = 12 * 1024 * 1024


class _File(NamedTuple):
    """A file that contains one session, and its only fragment."""

    fragment_id: int
    unit_id: int
    message_count: int


def delta_compress_repeats(db: sqlite3.Connection) -> bool:
    """Delta-compress the changed fragments that mostly repeat another one.

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
        f" and u.kind in ({', '.join('?' * len(SINGLE_SESSION_KINDS))})"
        " and not exists (select 1 from fragment o where o.unit_id = f.unit_id and o.id <> f.id)"
        " and exists (select 1 from raw_segment r where r.unit_id = f.unit_id)",
        [fragment_id, *SINGLE_SESSION_KINDS],
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
        delta = encode_delta_chunk(
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
        delta = encode_delta_segment(
            reader.decode_segment(None, fragment_id, body), data, version=version, offset=start
        )
        if len(delta) < len(body):
            query = (
                "update raw_segment set delta_base_unit_id = ?, delta_base_fragment_id = null, body = ?"
                " where rowid = ?"
            )
            db.execute(query, [base.unit_id, delta, row])
