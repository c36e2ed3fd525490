"""The messages of sessions, as they stand today."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from backscroll.archive.derive.fragments import Account, accounts_of, agents_of, told_by
from backscroll.archive.derive.token_usage import usage_of
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import decoded, number_of, unpack
from backscroll.archive.storage.delta import Plain
from backscroll.model import Message, SessionSummary, TokenUsage
from backscroll.model.merge_messages import woven

__all__ = ["extent", "messages_in", "messages_of"]


def messages_of(db: sqlite3.Connection, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
    """The messages of a session or a subagent from a position on, in order, as they stand today.

    Told by one account, as nearly all are, they come piece by piece and are never all in memory, and what is
    before the position is not read.
    """
    accounts, agent_id = _accounts(db, summary)
    if start and len(accounts) == 1 and agent_id is None and not accounts[0].is_former:
        # With the one before it, which may be of the same response.
        some = _with_usage(messages_in(db, accounts[0].number, start - 1), usage_of(db, accounts[0].number))
        return islice(some, 1, None)
    return islice(_messages_of(db, accounts, agent_id), start, None)


def extent(db: sqlite3.Connection, summary: SessionSummary) -> tuple[int | None, int]:
    """Which account tells of a session and how many messages it has; None when there are several."""
    accounts, agent_id = _accounts(db, summary)
    if len(accounts) == 1 and agent_id is None and not accounts[0].is_former:
        return accounts[0].number, accounts[0].messages
    return None, sum(1 for _ in _messages_of(db, accounts, agent_id))


def _messages_of(db: sqlite3.Connection, accounts: list[Account], agent_id: str | None) -> Iterator[Message]:
    told = [
        _left_in(db, account.number) if account.is_former else messages_in(db, account.number)
        for account in accounts
    ]
    if agent_id is not None:
        told = [(message for message in own if message.agent_id == agent_id) for own in told]
    if len(accounts) == 1:
        return _with_usage(told[0], usage_of(db, accounts[0].number))
    messages: Sequence[Message] = []
    for own in told:
        messages = woven(messages, own)
    return _with_usage(messages, _merged_usage(messages))


def _left_in(db: sqlite3.Connection, account: int) -> Iterator[Message]:
    """Those messages of a former account that its unit no longer tells; of the others it has no rows."""
    rows = db.execute("select position from message where fragment_id = ?", [account])
    left = {place for (place,) in rows}
    return (message for place, message in enumerate(messages_in(db, account)) if place in left)


def _accounts(db: sqlite3.Connection, summary: SessionSummary) -> tuple[list[Account], str | None]:
    """Where a session's messages lie; for a subagent inlined in its parent, the parent's and its own id."""
    if summary.parent_ref is None:
        return told_by(accounts_of(db, SessionKey(summary.platform, summary.id))), None
    parent = SessionKey(summary.platform, summary.parent_ref.partition(":")[2])
    own = agents_of(db, parent).get(summary.id)
    if own is not None:
        return told_by(own), None
    return told_by(accounts_of(db, parent)), summary.id


def messages_in(db: sqlite3.Connection, account: int, start: int = 0) -> Iterator[Message]:
    """An account's messages from a position on, with what was said of them later: whether they are still
    shown, and whose they are; but without what they cost."""
    at = db.execute(
        "select position from message_chunk where fragment_id = ? and position <= ? order by"
        " position desc limit 1",
        [account, start],
    ).fetchone()
    begin = at[0] if at is not None else 0
    changed = {
        place: (bool(active), copied)
        for place, active, copied in db.execute(
            "select position, is_active, text from message left join string on id = copied_from_string_id"
            " where fragment_id = ? and position >= ? and (not is_active or copied_from_string_id is"
            " not null)",
            [account, start],
        )
    }
    plain = Plain(db)
    for first, body in db.execute(
        "select position, body from message_chunk where fragment_id = ? and position >= ? order by position",
        [account, begin],
    ):
        messages = decoded(plain.chunk(body))
        for place, amended in db.execute(
            "select position, body from message_update where fragment_id = ? and position between ? and ?",
            [account, first, first + len(messages) - 1],
        ):
            messages[place - first] = unpack(amended)[0]
        passed = max(0, start - first)
        for place, message in enumerate(messages[passed:], start=first + passed):
            active, copied = changed.get(place, (True, None))
            if active is not message.is_active or copied != message.copied_from:
                message = replace(message, is_active=active, copied_from=copied)
            yield message


def _merged_usage(messages: Iterable[Message]) -> dict[int, TokenUsage]:
    """What each response cost, by the number of its id, where several accounts tell of it."""
    usage: dict[int, TokenUsage] = {}
    for message in messages:
        if message.usage is not None and message.response_id is not None:
            number = number_of(message.response_id)
            known = usage.get(number)
            usage[number] = known.merged(message.usage) if known else message.usage
    return usage


def _with_usage(messages: Iterable[Message], usage: dict[int, TokenUsage]) -> Iterator[Message]:
    """Each response's cost on its first message and nowhere else."""
    last = None  # the messages of a response follow each other
    for message in messages:
        share = message.usage
        if message.response_id is not None:
            share = usage.pop(number_of(message.response_id), None) if message.response_id != last else None
            last = message.response_id
        yield message if share is message.usage else replace(message, usage=share)
