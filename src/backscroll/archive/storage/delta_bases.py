"""Files that repeat others, kept for little: their bodies are stored so that they lean on the other's."""

import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from backscroll.archive.storage.delta import BodyReader, encode_delta_chunk, encode_delta_segment
from backscroll.archive.write.exclusions import SINGLE_SESSION_KINDS

__all__ = ["delta_compress_repeats"]

_DEEPEST = 8  # bases below each other
_LEAST = 0.3  # of its messages that a file shares with another, or it is not worth it
_NEARLY = 0.02  # so much less shared, and a base that leans on fewer others is still the better one
_PIECES = 6  # of the base that one piece may lean on
_BEFORE = 4 * 1024 * 1024  # bytes of the base, before and after the same offset
_AFTER = 12 * 1024 * 1024


class _Told(NamedTuple):
    """A file that tells of one session, by its one account."""

    account: int
    unit: int
    messages: int


def delta_compress_repeats(db: sqlite3.Connection) -> bool:
    """Store those of the changed accounts that mostly repeat another so that they lean on it.

    True when there were any, so that the archive has room to give back.
    """
    found = False
    for account, shared in _sharing(db):
        told = _told(db, account)
        if told is None or max(shared.values()) < told.messages * _LEAST:
            continue
        is_chunk_free, is_original_free = _is_free(db, told)
        base = _choose(db, told, shared) if is_chunk_free or is_original_free else None
        if base is None:
            continue
        if is_chunk_free:
            _lean_chunks(db, told, base)
        if is_original_free:
            _lean_originals(db, told, base)
        found = True
    return found


def _sharing(db: sqlite3.Connection) -> list[tuple[int, dict[int, float]]]:
    """Changed accounts, those read last first, with how many of their messages other accounts share.

    A copy with new ids still has its responses in common with what it was copied from; what a response
    stands for is about as many messages as there are to a response.
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
        for account, other, shared in db.execute(query):
            known = found.setdefault(account, {})
            known[other] = max(known.get(other, 0), shared)
    return sorted(found.items(), reverse=True)


def _told(db: sqlite3.Connection, account: int) -> _Told | None:
    """The file that an account is told by; None when it tells of others too, or its original is not kept."""
    row = db.execute(
        "select f.id, f.unit_id, f.message_count from fragment f join unit u on u.id = f.unit_id"  # noqa: S608
        " where f.id = ? and f.status = 'current' and f.message_count > 0"
        f" and u.kind in ({', '.join('?' * len(SINGLE_SESSION_KINDS))})"
        " and not exists (select 1 from fragment o where o.unit_id = f.unit_id and o.id <> f.id)"
        " and exists (select 1 from raw_segment r where r.unit_id = f.unit_id)",
        [account, *SINGLE_SESSION_KINDS],
    ).fetchone()
    return _Told(*row) if row is not None else None


def _is_free(db: sqlite3.Connection, told: _Told) -> tuple[bool, bool]:
    """Whether the messages, and the original, neither lean on others nor are leant on."""
    chunk, original = (
        db.execute(query, {"number": number}).fetchone() is None
        for query, number in (
            (
                "select 1 from message_chunk where fragment_id = :number"
                " and delta_base_fragment_id is not null or delta_base_fragment_id = :number",
                told.account,
            ),
            (
                "select 1 from raw_segment where unit_id = :number and delta_base_unit_id is not null"
                " or delta_base_unit_id = :number",
                told.unit,
            ),
        )
    )
    return chunk, original


def _choose(db: sqlite3.Connection, told: _Told, shared: dict[int, float]) -> _Told | None:
    """The best to lean on: of those that share about as much as any, the one that leans on fewest others."""
    found: list[tuple[int, float, _Told]] = []
    for account, count in shared.items():
        base = _told(db, account) if count >= told.messages * _LEAST else None
        if base is not None and base.unit != told.unit and (depth := _depth(db, account)) < _DEEPEST:
            found.append((depth, -count, base))
    most = max((-count for _, count, _ in found), default=0)
    near = [one for one in found if -one[1] >= most - told.messages * _NEARLY]
    return min(near)[-1] if near else None


def _depth(db: sqlite3.Connection, account: int) -> int:
    depth = 0
    while depth <= _DEEPEST:
        row = db.execute(
            "select delta_base_fragment_id from message_chunk where fragment_id = ?"
            " and delta_base_fragment_id is not null limit 1",
            [account],
        ).fetchone()
        if row is None:
            return depth
        account, depth = row[0], depth + 1
    return depth


def _lean_chunks(db: sqlite3.Connection, told: _Told, base: _Told) -> None:
    pairs = _pairs(db, told.account, base.account)
    own = [place for place, _ in pairs]
    starts = _starts(db, base.account)
    plain = BodyReader(db)
    rows = db.execute(
        "select rowid, position from message_chunk where fragment_id = ? order by position", [told.account]
    ).fetchall()
    ends = [position for _, position in rows[1:]] + [told.messages]
    found: list[tuple[int, int, bytes]] = []
    for (row, first), end in zip(rows, ends, strict=True):
        places = [place for _, place in pairs[bisect_left(own, first) : bisect_left(own, end)]]
        if not places:
            continue
        low, high = _covering(starts, min(places), max(places))
        (body,) = db.execute("select body from message_chunk where rowid = ?", [row]).fetchone()
        other = plain.read_chunks(base.account, low, high)
        leaning = encode_delta_chunk(plain.decode(body), other, account=base.account, first=low, last=high)
        if len(leaning) < len(body):
            found.append((row, first, leaning))
    # Written anew, side by side: a row that only becomes smaller leaves the rest of its page empty.
    db.executemany("delete from message_chunk where rowid = ?", [(row,) for row, _, _ in found])
    db.executemany(
        "insert into message_chunk (fragment_id, position, body, delta_base_fragment_id) values (?, ?, ?, ?)",
        [(told.account, first, leaning, base.account) for _, first, leaning in found],
    )


def _pairs(db: sqlite3.Connection, account: int, base: int) -> list[tuple[int, int]]:
    """Where messages stand, and where those that they repeat: the same records, or those of one response."""
    return sorted(
        db.execute(
            "select m.position, min(o.position) from message m cross join message o"
            " on o.record_hash = m.record_hash and o.fragment_id = :base where m.fragment_id = :account"
            " group by m.position"
            " union select m.position, min(o.position) from response r cross join response s"
            " on s.response_hash = r.response_hash and s.fragment_id = :base"
            " cross join message m indexed by message_record"
            " on m.record_hash = r.record_hash and m.fragment_id = r.fragment_id"
            " cross join message o indexed by message_record"
            " on o.record_hash = s.record_hash and o.fragment_id = s.fragment_id"
            " where r.fragment_id = :account group by m.position",
            {"account": account, "base": base},
        ).fetchall()
    )


def _starts(db: sqlite3.Connection, account: int) -> list[int]:
    query = "select position from message_chunk where fragment_id = ? order by position"
    return [position for (position,) in db.execute(query, [account])]


def _covering(starts: Sequence[int], low: int, high: int) -> tuple[int, int]:
    """The first and the last of the pieces in which these places lie, or as many as may be."""
    first = max(0, bisect_right(starts, low) - 1)
    last = max(first, bisect_right(starts, high) - 1)
    return starts[first], starts[min(last, first + _PIECES - 1)]


def _lean_originals(db: sqlite3.Connection, told: _Told, base: _Told) -> None:
    """Lean on the other file's newest state, around the same offset."""
    state, size = db.execute(
        "select version, sum(size) from raw_segment where unit_id = ? group by version"
        " order by version desc limit 1",
        [base.unit],
    ).fetchone()
    plain = BodyReader(db)
    query = "select rowid, offset from raw_segment where unit_id = ?"
    for row, offset in db.execute(query, [told.unit]).fetchall():
        query = "select delta_base_fragment_id, body from raw_segment where rowid = ?"
        account, body = db.execute(query, [row]).fetchone()
        start = max(0, min(offset, size - _AFTER) - _BEFORE)
        other = plain.read_file_range(base.unit, state, start, offset + _AFTER - start)
        leaning = encode_delta_segment(
            plain.decode_segment(None, account, body), other, state=state, offset=start
        )
        if len(leaning) < len(body):
            query = (
                "update raw_segment set delta_base_unit_id = ?, delta_base_fragment_id = null, body = ?"
                " where rowid = ?"
            )
            db.execute(query, [base.unit, leaning, row])
