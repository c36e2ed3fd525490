"""Queries for messages."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from backscroll.archive.query.message_cache import FragmentPosition, MessageCache
from backscroll.archive.query.message_lookup import (
    MessageInSession,
    MessageKey,
    lookup_messages,
    single_fragment,
)
from backscroll.archive.query.message_reader import fragment_messages, session_extent, session_messages
from backscroll.archive.query.session_cache import SessionCache
from backscroll.archive.storage.codec import hash64, hash_record
from backscroll.archive.storage.strings import FIXED_STRING_IDS
from backscroll.archive.timestamps import from_ms, to_ms
from backscroll.model import Message, SessionSummary
from backscroll.model.session import Stretch

if TYPE_CHECKING:
    from backscroll.archive.query.original_records import OriginalRecords, ResultCallIds, RowKeys

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

    def version(self, summary: SessionSummary) -> str:
        """Return a value that changes when the messages of a session or its subagents are read again."""
        parent = summary.parent_ref.partition(":")[2] if summary.parent_ref is not None else summary.id
        (version,) = self._db.execute(
            "select json_group_array(json_array(f.id, f.status, f.is_derived, f.message_count,"
            " f.compared_count, u.fingerprint, u.read_at)) from fragment f join unit u on u.id = f.unit_id"
            " where f.id in (select id from fragment where external_id = :id and platform = :platform"
            " union select id from fragment where external_id = :parent and platform = :platform"
            " union select id from fragment where is_subagent = 1 and platform = :platform"
            " and coalesce(parent_external_id, inferred_parent_external_id) = :parent)",
            {"id": summary.id, "parent": parent, "platform": summary.platform},
        ).fetchone()
        assert isinstance(version, str)
        return version

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
                if _is_prompt(message, agents)
            ]
        rows = self._db.execute(
            "select position from message left join string on id = agent_string_id"
            " where fragment_id = ? and role_string_id = ? and is_active"
            " and (text is null or text not in (select value from json_each(?))) order by position",
            [fragment_id, FIXED_STRING_IDS["user"], msgspec.json.encode(list(agents)).decode()],
        )
        return [position for (position,) in rows]

    def stretches(
        self, summary: SessionSummary, max_count: int, agents: Collection[str] = ()
    ) -> list[Stretch]:
        """Return the messages of a session in stretches of the same length, each with its counts.

        Messages to these agents, inlined in the session's own file, are no prompts.
        """
        fragment_id = single_fragment(self._db, summary)
        if fragment_id is not None:
            query = "select message_count from fragment where id = ?"
            (total,) = self._db.execute(query, [fragment_id]).fetchone()
            count = min(max_count, total)
            counts = _counts_of_fragment(self._db, fragment_id, total, count)
            prompts = self.turn_starts(summary, agents)
        else:
            messages = list(session_messages(self._db, summary))
            total = len(messages)
            count = min(max_count, total)
            counts = _counts_of_messages(messages, count)
            prompts = [position for position, one in enumerate(messages) if _is_prompt(one, agents)]
        stretches = []
        for index in range(count):
            start, end = -(-index * total // count), -(-(index + 1) * total // count)
            calls, errors, added, removed, compactions, at = counts.get(index, _NO_COUNTS)
            stretches.append(
                Stretch(
                    start=start,
                    end=end,
                    prompts=tuple(prompts[bisect_left(prompts, start) : bisect_left(prompts, end)]),
                    call_count=calls,
                    error_count=errors,
                    lines_added=added,
                    lines_removed=removed,
                    has_compaction=bool(compactions),
                    at=from_ms(at) if at is not None else None,
                )
            )
        return stretches

    def calls_among(
        self, summary: SessionSummary, call_ids: Collection[str], agents: Collection[str]
    ) -> set[str]:
        """Return those of the tool calls that the session made itself, not these inlined agents."""
        fragment_id = single_fragment(self._db, summary)
        if fragment_id is None:
            messages = session_messages(self._db, summary)
            calls = (one.tool.id for one in messages if one.tool is not None and one.agent_id not in agents)
            return set(call_ids).intersection(filter(None, calls))
        hashes = {hash64(call_id): call_id for call_id in call_ids}
        rows = self._db.execute(
            "select call_hash from message left join string on id = agent_string_id where fragment_id = ?"
            " and call_hash in (select value from json_each(?))"
            " and (text is null or text not in (select value from json_each(?)))",
            [fragment_id, *(msgspec.json.encode(list(values)).decode() for values in (hashes, agents))],
        )
        return {hashes[call_hash] for (call_hash,) in rows}

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
        from backscroll.archive.query.original_records import OriginalRecords  # start-up: for --raw only

        return OriginalRecords(self._db, summary, row_keys, result_call_ids)


_Counts = tuple[int, int, int, int, int, int | None]  # calls, errors, added, removed, compactions, time
_NO_COUNTS: _Counts = (0, 0, 0, 0, 0, None)


def _counts_of_fragment(
    db: sqlite3.Connection, fragment_id: int, total: int, count: int
) -> dict[int, _Counts]:
    """Return the counts of each stretch of a fragment. They come from the rows, without reading messages."""
    ids = FIXED_STRING_IDS
    lines = {
        index: (added, removed)
        for index, added, removed in db.execute(
            "select position * ? / ?, sum(lines_added), sum(lines_removed) from edit where fragment_id = ?"
            " group by 1",
            [count, total, fragment_id],
        )
    }
    rows = db.execute(
        "select position * ? / ?, sum(role_string_id = ?),"
        " sum(role_string_id = ? or coalesce(status_string_id, 0) in (?, ?)),"
        " sum(coalesce(kind_string_id, 0) = coalesce((select id from string where text = 'compaction'), -1)),"
        " min(at) from message where fragment_id = ? group by 1",
        [count, total, ids["tool"], ids["error"], ids["failed"], ids["cancelled"], fragment_id],
    )
    return {
        index: (calls, errors, *lines.get(index, (0, 0)), compactions, at)
        for index, calls, errors, compactions, at in rows
    }


def _is_prompt(message: Message, agents: Collection[str]) -> bool:
    return message.role == "user" and message.is_active and message.agent_id not in agents


def _counts_of_messages(messages: Sequence[Message], count: int) -> dict[int, _Counts]:
    found: dict[int, _Counts] = {}
    for position, message in enumerate(messages):
        index = position * count // len(messages)
        calls, errors, added, removed, compactions, earliest = found.get(index, _NO_COUNTS)
        tool = message.tool
        edits = tool.edits if tool is not None else ()
        is_failed = tool is not None and tool.status in ("failed", "cancelled")
        at = to_ms(message.timestamp) if message.timestamp is not None else earliest
        found[index] = (
            calls + (message.role == "tool"),
            errors + (message.role == "error" or is_failed),
            added + sum(edit.added for edit in edits),
            removed + sum(edit.removed for edit in edits),
            compactions + (message.kind == "compaction"),
            at if earliest is None or at is None else min(at, earliest),
        )
    return found
