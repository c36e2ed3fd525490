"""A session read from anywhere in it, without reading what is before."""

import sqlite3
from collections.abc import Collection, Iterator

import msgspec

from backscroll.archive.query.message_lookup import only_account
from backscroll.archive.query.messages import messages_in, messages_of
from backscroll.archive.storage.codec import record_number
from backscroll.archive.storage.strings import FIXED
from backscroll.model import Message, SessionSummary

__all__ = ["position_of", "prompts_of", "talk_of"]


def talk_of(db: sqlite3.Connection, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
    """The messages of a session from a position on, without what they cost."""
    account = only_account(db, summary)
    return messages_of(db, summary, start) if account is None else messages_in(db, account, start)


def prompts_of(db: sqlite3.Connection, summary: SessionSummary, agents: Collection[str]) -> list[int]:
    """Where each turn begins: the positions of what the user said, on the branch that the tool shows.

    What is said to one of these agents in the session's own file is none of it.
    """
    account = only_account(db, summary)
    if account is None:
        return [
            position
            for position, message in enumerate(messages_of(db, summary))
            if message.role == "user" and message.is_active and message.agent_id not in agents
        ]
    rows = db.execute(
        "select position from message left join string on id = agent_string_id where fragment_id = ?"
        " and role_string_id = ?"
        " and is_active and (text is null or text not in (select value from json_each(?)))"
        " order by position",
        [account, FIXED["user"], msgspec.json.encode(list(agents)).decode()],
    )
    return [position for (position,) in rows]


def position_of(db: sqlite3.Connection, summary: SessionSummary, id_: str) -> list[tuple[int, str]]:
    """The positions and ids of the messages that have this id; else of those whose id begins so."""
    account = only_account(db, summary)
    if account is not None:
        rows = db.execute(
            "select position from message where fragment_id = ? and record_hash = ? order by position",
            [account, record_number(id_, summary.id)],
        ).fetchall()
        if rows:
            near = zip(range(rows[0][0], rows[-1][0] + 1), messages_in(db, account, rows[0][0]), strict=False)
            found = [(position, message.id) for position, message in near if message.id == id_]
            if found:
                return found[:1]
    told = enumerate(message.id for message in talk_of(db, summary))
    some = [(position, id_of) for position, id_of in told if id_of.startswith(id_)]
    return [each for each in some if each[1] == id_][:1] or some
