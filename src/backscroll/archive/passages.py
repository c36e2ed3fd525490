"""Messages at known places, many at once, with the sessions that they are in: what a page of finds shows."""

import sqlite3
from collections.abc import Iterable
from itertools import groupby, islice

import msgspec

from backscroll.archive.at_hand import AtHand
from backscroll.archive.reading import messages_of
from backscroll.archive.summaries import numbered
from backscroll.model import STORES, Message, SessionSummary

__all__ = ["Passage", "Place", "copies_in", "only_account", "passages"]

Place = tuple[int, int]  # a session's number, and a message's position in it


class Passage(msgspec.Struct, frozen=True):
    """A message, and the session it is in."""

    summary: SessionSummary
    message: Message


def passages(
    db: sqlite3.Connection, at_hand: AtHand, places: Iterable[Place], having: bytes = b""
) -> dict[Place, Passage]:
    """What stands at these places; left out is where nothing stands, or what is packed without some bytes."""
    wanted = sorted(set(places))
    summaries = numbered(db, {number for number, _ in wanted})
    accounts: dict[int, int] = {}  # of the sessions that one alone tells
    found: dict[Place, Message] = {}
    for number, group in groupby(wanted, key=lambda place: place[0]):
        if number not in summaries:
            continue
        account = only_account(db, summaries[number])
        if account is not None:
            accounts[number] = account
        else:
            found |= _told_by_several(db, summaries[number], number, {position for _, position in group})
    spots = {place: (accounts[place[0]], place[1]) for place in wanted if place[0] in accounts}
    told = at_hand.messages(list(spots.values()), having)
    found |= {place: told[spot] for place, spot in spots.items() if spot in told}
    return {place: Passage(summaries[place[0]], found[place]) for place in wanted if place in found}


def _told_by_several(
    db: sqlite3.Connection, summary: SessionSummary, number: int, positions: set[int]
) -> dict[Place, Message]:
    told = enumerate(islice(messages_of(db, summary), max(positions) + 1))
    return {(number, place): message for place, message in told if place in positions}


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
