"""Messages at known places, many at once, with the sessions that they are in: what a page of finds shows."""

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import groupby, islice

import msgspec

from backscroll.archive.bases import Plain
from backscroll.archive.bodies import Piece
from backscroll.archive.reading import messages_of, numbered
from backscroll.model import STORES, Message, SessionSummary

__all__ = ["Passage", "Place", "copies_in", "indexes", "only_account", "passages"]

Place = tuple[int, int]  # a session's number, and a message's position in it


class Passage(msgspec.Struct, frozen=True):
    """A message, and the session it is in."""

    summary: SessionSummary
    message: Message


def passages(db: sqlite3.Connection, places: Iterable[Place]) -> dict[Place, Passage]:
    """What stands at these places; a place where nothing stands is left out."""
    wanted = sorted(set(places))
    summaries = numbered(db, {number for number, _ in wanted})
    found: dict[Place, Passage] = {}
    for number, group in groupby(wanted, key=lambda place: place[0]):
        summary = summaries.get(number)
        if summary is None:
            continue
        for position, message in _messages(db, summary, [position for _, position in group]):
            found[number, position] = Passage(summary, message)
    return found


def indexes(db: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, int]:
    """The places that sessions have in the whole list, from 1, by number; those not listed are left out."""
    rows = db.execute(
        "select number, updated_at from conversations where visibility in ('listed', 'archived')"
        " and number in (select value from json_each(?)) order by updated_at desc, number desc",
        [msgspec.json.encode(list(numbers)).decode()],
    ).fetchall()
    found: dict[int, int] = {}
    above, last = 0, ("~", 0)  # a time that is later than any; each is counted on from the one before
    for number, updated in rows:
        if updated is None:  # those without a time come last
            above = db.execute(
                "select count(*) from conversations where visibility in ('listed', 'archived')"
                " and (updated_at is not null or number >= ?)",
                [number],
            ).fetchone()[0]
        else:
            above += db.execute(
                "select count(*) from conversations where visibility in ('listed', 'archived')"
                " and updated_at <= ? and (updated_at, number) < (?, ?) and (updated_at, number) >= (?, ?)",
                [last[0], *last, updated, number],
            ).fetchone()[0]
            last = (updated, number)
        found[number] = above
    return found


def _messages(
    db: sqlite3.Connection, summary: SessionSummary, positions: Sequence[int]
) -> Iterable[tuple[int, Message]]:
    account = only_account(db, summary)
    if account is None:
        wanted = set(positions)
        told = enumerate(islice(messages_of(db, summary), positions[-1] + 1))
        return [(place, message) for place, message in told if place in wanted]
    return _of_account(db, account, positions)


def _of_account(
    db: sqlite3.Connection, account: int, positions: Sequence[int]
) -> Iterable[tuple[int, Message]]:
    amended = db.execute(
        "select position, body from amendment where account = ?"
        " and position in (select value from json_each(?))",
        [account, msgspec.json.encode(positions).decode()],
    )
    known = dict(amended.fetchall())
    plain = Plain(db)
    piece, first = None, 0
    for position in positions:
        if position in known:
            yield position, Piece(plain.chunk(known[position])).message(0)
            continue
        if piece is None or position >= first + len(piece):
            row = db.execute(
                "select position, body from chunk where account = ? and position <= ?"
                " order by position desc limit 1",
                [account, position],
            ).fetchone()
            if row is None:
                continue
            first, piece = row[0], Piece(plain.chunk(row[1]))
        if position - first < len(piece):
            yield position, piece.message(position - first)


def only_account(db: sqlite3.Connection, summary: SessionSummary) -> int | None:
    """The account that a session's messages are in; None when they are put together from several."""
    if summary.parent_ref is None:
        rows = db.execute(
            "select number, store, messages, is_former from account where id = ? and platform = ?"
            " and (not is_agent or coalesce(parent_id, found_parent) is null) and length(closing)",
            [summary.id, summary.platform],
        ).fetchall()
    else:
        rows = db.execute(
            "select number, store, messages, is_former from account where id = ? and platform = ?"
            " and is_agent and coalesce(parent_id, found_parent) = ? and length(closing)",
            [summary.id, summary.platform, summary.parent_ref.partition(":")[2]],
        ).fetchall()
    if not rows:
        return None
    best = min(rows, key=lambda row: (not row[2], STORES.index(row[1])))
    alike = [(number, is_former) for number, store, _, is_former in rows if store == best[1]]
    # Of what was told before only some messages may be left.
    return alike[0][0] if len(alike) == 1 and not alike[0][1] else None


def copies_in(db: sqlite3.Connection, account: int) -> set[int]:
    """The positions of messages that another session held first."""
    rows = db.execute("select position from message where account = ? and copied_from is not null", [account])
    return {position for (position,) in rows}
