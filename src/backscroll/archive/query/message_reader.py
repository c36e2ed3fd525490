"""Read the messages of sessions and fragments in order."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from backscroll.archive.derive.fragments import (
    Fragment,
    content_fragments,
    session_fragments,
    subagent_fragments,
)
from backscroll.archive.derive.usage import usage_by_response
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import decode_chunk, decode_messages, hash64
from backscroll.archive.storage.delta import BodyReader
from backscroll.model.message import Message, TokenUsage, merge_messages
from backscroll.model.session import SessionSummary


def session_messages(db: sqlite3.Connection, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
    """Return the messages of a session or subagent from a position on, in order, with token usage.

    If the session has one fragment, as nearly all have, its messages are decompressed chunk by chunk,
    and chunks before the position are not read.
    """
    fragments, agent_id = _content_fragments(db, summary)
    if start and _is_single(fragments, agent_id):
        # Also read the message before: it can belong to the same response, which has its usage once.
        fragment_id = fragments[0].id
        messages = _with_usage(
            fragment_messages(db, fragment_id, start - 1), usage_by_response(db, fragment_id)
        )
        return islice(messages, 1, None)
    return islice(_merged_messages(db, fragments, agent_id), start, None)


def session_extent(db: sqlite3.Connection, summary: SessionSummary) -> tuple[int | None, int]:
    """Return the id of a session's fragment, None if there are several, and the number of messages."""
    fragments, agent_id = _content_fragments(db, summary)
    if _is_single(fragments, agent_id):
        return fragments[0].id, fragments[0].message_count
    return None, sum(1 for _ in _merged_messages(db, fragments, agent_id))


def fragment_messages(db: sqlite3.Connection, fragment_id: int, start: int = 0) -> Iterator[Message]:
    """Return the messages of a fragment from a position on, with later updates, without merged usage."""
    row = db.execute(
        "select position from message_chunk where fragment_id = ? and position <= ?"
        " order by position desc limit 1",
        [fragment_id, start],
    ).fetchone()
    first_chunk = row[0] if row is not None else 0
    changed = {
        position: (bool(is_active), copied_from)
        for position, is_active, copied_from in db.execute(
            "select position, is_active, text from message left join string on id = copied_from_string_id"
            " where fragment_id = ? and position >= ?"
            " and (not is_active or copied_from_string_id is not null)",
            [fragment_id, start],
        )
    }
    reader = BodyReader(db)
    for chunk_start, body in db.execute(
        "select position, body from message_chunk where fragment_id = ? and position >= ? order by position",
        [fragment_id, first_chunk],
    ):
        messages = decode_messages(reader.decode(body))
        for position, updated in db.execute(
            "select position, body from message_update where fragment_id = ? and position between ? and ?",
            [fragment_id, chunk_start, chunk_start + len(messages) - 1],
        ):
            messages[position - chunk_start] = decode_chunk(updated)[0]
        skipped = max(0, start - chunk_start)
        for position, message in enumerate(messages[skipped:], start=chunk_start + skipped):
            is_active, copied_from = changed.get(position, (True, None))
            if is_active is not message.is_active or copied_from != message.copied_from:
                message = replace(message, is_active=is_active, copied_from=copied_from)
            yield message


def _content_fragments(db: sqlite3.Connection, summary: SessionSummary) -> tuple[list[Fragment], str | None]:
    """Return the fragments with a session's messages.

    For a subagent inlined in its session, return the fragments of the session and the subagent's id.
    """
    if summary.parent_ref is None:
        return content_fragments(session_fragments(db, SessionKey(summary.platform, summary.id))), None
    parent = SessionKey(summary.platform, summary.parent_ref.partition(":")[2])
    own = subagent_fragments(db, parent).get(summary.id)
    if own is not None:
        return content_fragments(own), None
    return content_fragments(session_fragments(db, parent)), summary.id


def _is_single(fragments: Sequence[Fragment], agent_id: str | None) -> bool:
    """Return whether the messages are all messages of one fragment, so that positions are the same."""
    return len(fragments) == 1 and agent_id is None and not fragments[0].is_superseded


def _merged_messages(
    db: sqlite3.Connection, fragments: Sequence[Fragment], agent_id: str | None
) -> Iterator[Message]:
    streams = [
        _remaining_messages(db, fragment.id) if fragment.is_superseded else fragment_messages(db, fragment.id)
        for fragment in fragments
    ]
    if agent_id is not None:
        streams = [(message for message in stream if message.agent_id == agent_id) for stream in streams]
    if len(fragments) == 1:
        return _with_usage(streams[0], usage_by_response(db, fragments[0].id))
    messages: Sequence[Message] = []
    for stream in streams:
        messages = merge_messages(messages, stream)
    return _with_usage(messages, _merged_usage(messages))


def _remaining_messages(db: sqlite3.Connection, fragment_id: int) -> Iterator[Message]:
    """Return the messages of a superseded fragment that its unit no longer contains. Only they have rows."""
    rows = db.execute("select position from message where fragment_id = ?", [fragment_id])
    remaining = {position for (position,) in rows}
    messages = enumerate(fragment_messages(db, fragment_id))
    return (message for position, message in messages if position in remaining)


def _merged_usage(messages: Iterable[Message]) -> dict[int, TokenUsage]:
    """Return the usage of each response by response hash, merged from several fragments."""
    usage: dict[int, TokenUsage] = {}
    for message in messages:
        if message.usage is not None and message.response_id is not None:
            response_hash = hash64(message.response_id)
            known = usage.get(response_hash)
            usage[response_hash] = known.merged(message.usage) if known else message.usage
    return usage


def _with_usage(messages: Iterable[Message], usage: dict[int, TokenUsage]) -> Iterator[Message]:
    """Set the usage of each response on its first message and remove it from the others."""
    last_response_id = None  # the messages of a response are consecutive
    for message in messages:
        own = message.usage
        if message.response_id is not None:
            is_first = message.response_id != last_response_id
            own = usage.pop(hash64(message.response_id), None) if is_first else None
            last_response_id = message.response_id
        yield message if own is message.usage else replace(message, usage=own)
