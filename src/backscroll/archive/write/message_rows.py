"""Rows of messages and edits: what is counted and looked up without decompressing message chunks."""

import sqlite3
from collections.abc import Callable, Iterable

from backscroll.archive.storage.codec import hash64, hash_record, to_milliseconds
from backscroll.archive.storage.strings import StringTable
from backscroll.model import Message, record_id_of

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
    strings: StringTable,
    fragment_id: int,
    session_id: str,
    messages: Iterable[tuple[int, Message]],
    *,
    unless_forgotten: Callable[[str], str | None],
) -> None:
    """Insert the rows of messages, given with their positions, and of their edits.

    `unless_forgotten` returns the id of the session that a message was copied from, or None if that session
    was forgotten.
    """
    rows: list[tuple[int, ...]] = []
    edits: list[tuple[object, ...]] = []
    last_record, record_hash = "", 0
    for position, message in messages:
        record = record_id_of(message.id)
        if record != last_record:  # the messages of a record follow each other
            last_record, record_hash = record, hash_record(record, session_id)
        tool, copied_from = message.tool, message.copied_from
        tool_name = call_hash = status = decision = 0
        if tool is not None:
            tool_name, status, decision = strings[tool.name], strings[tool.status], strings[tool.decision]
            if tool.id is not None:
                call_hash = hash64(tool.id)
            if tool.edits:
                edits += [(fragment_id, position, e.path, e.kind, e.added, e.removed) for e in tool.edits]
        rows.append(
            (
                fragment_id,
                position,
                record_hash,
                to_milliseconds(message.timestamp) or 0,
                strings[message.role],
                strings[message.kind],
                tool_name,
                call_hash,
                status,
                decision,
                strings[message.model],
                strings[message.agent_id],
                int(message.is_active),
                strings[unless_forgotten(copied_from)] if copied_from is not None else 0,
            )
        )
    db.executemany(_INSERT, rows)
    if edits:
        db.executemany("insert into edit values (?, ?, ?, ?, ?, ?)", edits)
