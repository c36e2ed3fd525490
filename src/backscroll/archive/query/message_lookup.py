"""Messages at known places, many at once, with the sessions that they are in: what a page of finds shows."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import groupby, islice
from typing import NamedTuple

import msgspec

from backscroll.archive.query.chunk_cache import Spot
from backscroll.archive.query.read_cache import AtHand, Told
from backscroll.archive.query.sessions import numbered
from backscroll.model import STORES, Message, SessionSummary

__all__ = ["MessageInSession", "MessageKey", "copies_in", "only_account", "passages"]

MessageKey = tuple[int, int]  # a session's number, and a message's position in it


class MessageInSession(msgspec.Struct, frozen=True):
    """A message, and the session it is in."""

    summary: SessionSummary
    message: Message


def passages(
    db: sqlite3.Connection, at_hand: AtHand, places: Iterable[MessageKey], having: tuple[bytes, ...] = ()
) -> dict[MessageKey, MessageInSession]:
    """What stands at these places; left out is where nothing stands, or what is packed without some bytes."""
    wanted = sorted(set(places))
    sessions = at_hand.sessions({number for number, _ in wanted}, partial(_sessions, db))
    found: dict[MessageKey, Message] = {}
    spots: dict[MessageKey, Spot] = {}
    for number, group in groupby(
        (place for place in wanted if place[0] in sessions), key=lambda place: place[0]
    ):
        summary, account = sessions[number]
        if account is None:
            found |= _told_by_several(db, summary, number, {position for _, position in group})
        else:
            spots |= {place: (account, place[1]) for place in group}
    told = at_hand.messages(list(spots.values()), having)
    found |= {place: told[spot] for place, spot in spots.items() if spot in told}
    return {
        place: MessageInSession(sessions[place[0]][0], found[place]) for place in wanted if place in found
    }


def _sessions(db: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, Told]:
    """Sessions by their numbers, with the accounts that alone tell of them."""
    summaries = numbered(db, numbers)
    accounts = _only_accounts(db, summaries)
    return {number: (summary, accounts.get(number)) for number, summary in summaries.items()}


def _told_by_several(
    db: sqlite3.Connection, summary: SessionSummary, number: int, positions: set[int]
) -> dict[MessageKey, Message]:
    from backscroll.archive.query.messages import messages_of  # loaded by nobody who finds none of these

    told = enumerate(islice(messages_of(db, summary), max(positions) + 1))
    return {(number, place): message for place, message in told if place in positions}


def only_account(db: sqlite3.Connection, summary: SessionSummary) -> int | None:
    """The account that a session's messages are in; None when they are put together from several."""
    return _only_accounts(db, {0: summary}).get(0)


def _only_accounts(db: sqlite3.Connection, summaries: Mapping[int, SessionSummary]) -> dict[int, int]:
    """The accounts of those sessions that one alone tells."""
    rows = db.execute(
        "select f.external_id, f.platform,"
        " iif(f.is_subagent, coalesce(f.parent_external_id, f.inferred_parent_external_id), null),"
        " f.id, f.store, f.message_count, f.status <> 'current' from json_each(?) j"
        " cross join fragment f on f.external_id = j.value where length(f.closing)",
        [msgspec.json.encode({one.id for one in summaries.values()}).decode()],
    )
    told: defaultdict[tuple[str, str, str | None], list[_Account]] = defaultdict(list)
    for id_, platform, parent, *account in rows:
        told[id_, platform, parent].append(_Account(*account))
    found: dict[int, int] = {}
    for number, summary in summaries.items():
        parent = summary.parent_ref.partition(":")[2] if summary.parent_ref is not None else None
        alike = told.get((summary.id, summary.platform, parent), [])
        best = min(alike, key=lambda one: (not one.messages, STORES.index(one.store)), default=None)
        alike = [one for one in alike if best is not None and one.store == best.store]
        # Of what was told before only some messages may be left.
        if len(alike) == 1 and not alike[0].is_former:
            found[number] = alike[0].number
    return found


class _Account(NamedTuple):
    number: int
    store: str
    messages: int
    is_former: int


def copies_in(db: sqlite3.Connection, account: int) -> set[int]:
    """The positions of messages that another session held first."""
    rows = db.execute(
        "select position from message where fragment_id = ? and copied_from_string_id is not null", [account]
    )
    return {position for (position,) in rows}
