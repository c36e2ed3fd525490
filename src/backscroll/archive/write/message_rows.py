"""Messages as rows: what is counted and looked up without opening the pieces that they lie in."""

import sqlite3
from collections.abc import Callable, Iterable

from backscroll.archive.storage.codec import milliseconds, number_of, record_number
from backscroll.archive.storage.strings import Words
from backscroll.model import Message, record_of

__all__ = ["insert_messages"]

_INSERT = (
    "insert into message (fragment_id, position, record_hash, at, role_string_id, kind_string_id,"
    " tool_string_id, call_hash, status_string_id, decision_string_id, model_string_id, agent_string_id,"
    " is_active, forked_from_string_id, copied_from_string_id)"
    " values (?, ?, ?, nullif(?, 0), ?, nullif(?, 0), nullif(?, 0), nullif(?, 0), nullif(?, 0),"
    " nullif(?, 0), nullif(?, 0), nullif(?, 0), ?, nullif(?14, 0), nullif(?14, 0))"
)


def insert_messages(
    db: sqlite3.Connection,
    words: Words,
    account: int,
    session: str,
    placed: Iterable[tuple[int, Message]],
    *,
    remembered: Callable[[str], str | None],
) -> None:
    """Write the rows of a session's messages and of their edits, by position.

    ``remembered`` says by which name a session that a message was copied from may be called.
    """
    rows: list[tuple[int, ...]] = []
    edits: list[tuple[object, ...]] = []
    last, record = "", 0
    for place, message in placed:
        name = record_of(message.id)
        if name != last:  # a record's messages follow each other
            last, record = name, record_number(name, session)
        tool, forked = message.tool, message.copied_from
        named = call = status = decision = 0
        if tool is not None:
            named, status, decision = words[tool.name], words[tool.status], words[tool.decision]
            if tool.id is not None:
                call = number_of(tool.id)
            if tool.edits:
                edits += [(account, place, e.path, e.kind, e.added, e.removed) for e in tool.edits]
        rows.append(
            (
                account,
                place,
                record,
                milliseconds(message.timestamp) or 0,
                words[message.role],
                words[message.kind],
                named,
                call,
                status,
                decision,
                words[message.model],
                words[message.agent_id],
                int(message.is_active),
                words[remembered(forked)] if forked is not None else 0,
            )
        )
    db.executemany(_INSERT, rows)
    if edits:
        db.executemany("insert into edit values (?, ?, ?, ?, ?, ?)", edits)
