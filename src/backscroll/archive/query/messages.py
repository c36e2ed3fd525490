"""Queries for messages."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from backscroll.archive.query.message_cache import FragmentPosition, MessageCache
from backscroll.archive.query.message_lookup import (
    MessageInSession,
    MessageKey,
    lookup_messages,
    single_fragment,
)
from backscroll.archive.query.message_reader import fragment_messages, session_extent, session_messages
from backscroll.archive.query.original_records import OriginalRecords, ResultCallIds, RowKeys
from backscroll.archive.query.session_cache import SessionCache
from backscroll.archive.storage.codec import hash_record
from backscroll.archive.storage.strings import FIXED_STRING_IDS
from backscroll.model import Message, SessionSummary

__all__ = ["MessageQueries"]


class MessageQueries:
    """Read messages, find their positions and their original records."""

    def __init__(self, db: sqlite3.Connection, sessions: SessionCache) -> None:
        self._db = db
        self._session_cache = sessions
        self._message_cache = MessageCache(db)

    def lookup(
        self, keys: Iterable[MessageKey], required_bytes: tuple[bytes, ...] = ()
    ) -> dict[MessageKey, MessageInSession]:
        """Return the messages with these keys and their sessions. See `lookup_messages`."""
        return lookup_messages(self._db, self._session_cache, self._message_cache, keys, required_bytes)

    def of_session(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """Return the messages of a session from a position on, in order. See `session_messages`."""
        return session_messages(self._db, summary, start)

    def without_usage(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """Return the same messages without merged token usage. The first one arrives without delay."""
        fragment_id = single_fragment(self._db, summary)
        if fragment_id is None:
            return session_messages(self._db, summary, start)
        return fragment_messages(self._db, fragment_id, start)

    def of_fragment(self, fragment_id: int, start: int) -> Iterator[Message]:
        """Return the messages of a fragment from a position on, without merged token usage."""
        return fragment_messages(self._db, fragment_id, start)

    def at_positions(self, positions: Sequence[FragmentPosition]) -> dict[FragmentPosition, Message]:
        """Return single messages of fragments, without merged token usage. Missing ones are omitted."""
        return self._message_cache.messages(positions)

    def extent(self, summary: SessionSummary) -> tuple[int | None, int]:
        """Return the id of a session's fragment, None if there are several, and the number of messages."""
        return session_extent(self._db, summary)

    def single_fragment(self, summary: SessionSummary) -> tuple[int, set[int]] | None:
        """Return a session's only fragment and the positions of copied messages, None if it has several."""
        fragment_id = single_fragment(self._db, summary)
        if fragment_id is None:
            return None
        rows = self._db.execute(
            "select position from message where fragment_id = ? and copied_from_string_id is not null",
            [fragment_id],
        )
        return fragment_id, {position for (position,) in rows}

    def turn_starts(self, summary: SessionSummary, agents: Collection[str] = ()) -> list[int]:
        """Return the positions of the user's messages on the active branch.

        Messages to these agents, inlined in the session's own file, are omitted.
        """
        fragment_id = single_fragment(self._db, summary)
        if fragment_id is None:
            return [
                position
                for position, message in enumerate(session_messages(self._db, summary))
                if message.role == "user" and message.is_active and message.agent_id not in agents
            ]
        rows = self._db.execute(
            "select position from message left join string on id = agent_string_id"
            " where fragment_id = ? and role_string_id = ? and is_active"
            " and (text is null or text not in (select value from json_each(?))) order by position",
            [fragment_id, FIXED_STRING_IDS["user"], msgspec.json.encode(list(agents)).decode()],
        )
        return [position for (position,) in rows]

    def find_positions(self, summary: SessionSummary, message_id: str) -> list[tuple[int, str]]:
        """Return position and id of the message with this id. If there is none, match the id as a prefix."""
        fragment_id = single_fragment(self._db, summary)
        if fragment_id is not None:
            position = self._find_in_fragment(fragment_id, summary, message_id)
            if position is not None:
                return [(position, message_id)]
        ids = enumerate(message.id for message in self.without_usage(summary))
        found = [(position, id_) for position, id_ in ids if id_.startswith(message_id)]
        return [match for match in found if match[1] == message_id][:1] or found

    def _find_in_fragment(self, fragment_id: int, summary: SessionSummary, message_id: str) -> int | None:
        """Return the position of a message by its record hash, which several messages can share."""
        positions = [
            position
            for (position,) in self._db.execute(
                "select position from message where fragment_id = ? and record_hash = ? order by position",
                [fragment_id, hash_record(message_id, summary.id)],
            )
        ]
        if not positions:
            return None
        candidates = zip(
            range(positions[0], positions[-1] + 1),
            fragment_messages(self._db, fragment_id, positions[0]),
            strict=False,
        )
        return next((position for position, message in candidates if message.id == message_id), None)

    def original_records(
        self,
        summary: SessionSummary,
        row_keys: RowKeys = lambda location: (location,),
        result_call_ids: ResultCallIds = lambda record: (),
    ) -> OriginalRecords:
        """Return access to the original records of a session's messages. The functions are the source's."""
        return OriginalRecords(self._db, summary, row_keys, result_call_ids)
