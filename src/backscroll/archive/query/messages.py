"""Queries for messages: of one session, single ones of many sessions, and their original records."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import groupby, islice
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from backscroll.archive.connection import from_ms, to_ms
from backscroll.archive.derive.fragments import (
    Fragment,
    content_fragments,
    session_fragments,
    subagent_fragments,
)
from backscroll.archive.derive.usage import usage_by_response
from backscroll.archive.query.sessions import CachedSession, DataVersion, SessionCache, summaries_by_id
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.codec import (
    Chunk,
    SeekTable,
    decode_chunk,
    decode_messages,
    frame_as_list,
    hash64,
    hash_record,
    read_seek_table,
)
from backscroll.archive.storage.delta import BodyReader
from backscroll.archive.storage.strings import FIXED_STRING_IDS
from backscroll.lru_cache import LRUCache
from backscroll.model.message import Message, TokenUsage, merge_messages
from backscroll.model.session import SessionSummary, Stretch
from backscroll.model.store import store_rank

if TYPE_CHECKING:
    from backscroll.archive.query.originals import OriginalRecords, ResultCallIds, RowKeys

MAX_CACHE_BYTES = 16 * 1024 * 1024
MAX_DELTA_BASE_BYTES = 4 * 1024 * 1024
FragmentPosition = tuple[int, int]  # id of a fragment, position of a message or of a chunk's first message
MessageKey = tuple[int, int]  # id of a session (conversations.number or subagent.id), position of a message
_Counts = tuple[int, int, int, int, int, int | None]  # calls, errors, added, removed, compactions, time
_NO_COUNTS: _Counts = (0, 0, 0, 0, 0, None)


class MessageInSession(msgspec.Struct, frozen=True):
    """A message with its session."""

    summary: SessionSummary
    message: Message


class MessageQueries:
    """Read messages, find their positions and their original records."""

    def __init__(self, db: sqlite3.Connection, sessions: SessionCache) -> None:
        self._db = db
        self._session_cache = sessions
        self._message_cache = _MessageCache(db)

    def lookup(
        self, keys: Iterable[MessageKey], required_bytes: tuple[bytes, ...] = ()
    ) -> dict[MessageKey, MessageInSession]:
        """Return the messages with these keys and their sessions. Missing messages are omitted.

        Messages can be omitted if their encoded form does not contain all `required_bytes`.
        """
        sorted_keys = sorted(set(keys))
        sessions = self._session_cache.sessions(
            {session_id for session_id, _ in sorted_keys}, partial(_read_sessions, self._db)
        )
        found: dict[MessageKey, Message] = {}
        positions: dict[MessageKey, FragmentPosition] = {}
        for session_id, group in groupby(
            (key for key in sorted_keys if key[0] in sessions), lambda key: key[0]
        ):
            summary, fragment_id = sessions[session_id]
            if fragment_id is None:
                found |= _lookup_merged(self._db, summary, session_id, {position for _, position in group})
            else:
                positions |= {key: (fragment_id, key[1]) for key in group}
        messages = self._message_cache.messages(list(positions.values()), required_bytes)
        found |= {key: messages[position] for key, position in positions.items() if position in messages}
        return {key: MessageInSession(sessions[key[0]][0], found[key]) for key in sorted_keys if key in found}

    def of_session(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """Return the messages of a session from a position on, in order. See `session_messages`."""
        return session_messages(self._db, summary, start)

    def without_usage(self, summary: SessionSummary, start: int = 0) -> Iterator[Message]:
        """Return the same messages without merged token usage. The first one arrives without delay."""
        fragment_id = _single_fragment(self._db, summary)
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
        fragment_id = _single_fragment(self._db, summary)
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
        fragment_id = _single_fragment(self._db, summary)
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
        fragment_id = _single_fragment(self._db, summary)
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
        fragment_id = _single_fragment(self._db, summary)
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
        fragment_id = _single_fragment(self._db, summary)
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
        from backscroll.archive.query.originals import OriginalRecords  # start-up: for --raw only

        return OriginalRecords(self._db, summary, row_keys, result_call_ids)


def _is_prompt(message: Message, agents: Collection[str]) -> bool:
    return message.role == "user" and message.is_active and message.agent_id not in agents


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


def _single_fragment(db: sqlite3.Connection, summary: SessionSummary) -> int | None:
    """Return the id of the fragment with a session's messages, None if they are merged from several."""
    return _single_fragments(db, {0: summary}).get(0)


class _Fragment(msgspec.Struct, frozen=True, gc=False):
    id: int
    store: str
    message_count: int
    is_current: bool


def _single_fragments(db: sqlite3.Connection, summaries: Mapping[int, SessionSummary]) -> dict[int, int]:
    """Return the fragment ids of the sessions that have one fragment, by session id."""
    rows = db.execute(
        "select f.external_id, f.platform,"
        " iif(f.is_subagent, coalesce(f.parent_external_id, f.inferred_parent_external_id), null),"
        " f.id, f.store, f.message_count, f.status = 'current' from json_each(?) j"
        " cross join fragment f on f.external_id = j.value where length(f.closing)",
        [msgspec.json.encode({summary.id for summary in summaries.values()}).decode()],
    )
    by_session: defaultdict[tuple[str, str, str | None], list[_Fragment]] = defaultdict(list)
    for external_id, platform, parent_id, *fragment in rows:
        by_session[external_id, platform, parent_id].append(_Fragment(*fragment))
    found: dict[int, int] = {}
    for session_id, summary in summaries.items():
        parent_id = summary.parent_ref.partition(":")[2] if summary.parent_ref is not None else None
        fragments = by_session.get((summary.id, summary.platform, parent_id), [])
        if not fragments:
            continue
        best = min(fragments, key=lambda one: (not one.message_count, store_rank(one.store)))
        same_store = [fragment for fragment in fragments if fragment.store == best.store]
        # A superseded fragment may have lost some of its messages.
        if len(same_store) == 1 and best.is_current:
            found[session_id] = best.id
    return found


def _read_sessions(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, CachedSession]:
    summaries = summaries_by_id(db, ids)
    fragments = _single_fragments(db, summaries)
    return {id_: (summary, fragments.get(id_)) for id_, summary in summaries.items()}


def _lookup_merged(
    db: sqlite3.Connection, summary: SessionSummary, session_id: int, positions: set[int]
) -> dict[MessageKey, Message]:
    messages = enumerate(islice(session_messages(db, summary), max(positions) + 1))
    return {(session_id, position): message for position, message in messages if position in positions}


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


class _MessageCache:
    """Cached messages of one connection. Invalidated when the archive changes.

    A search that is typed letter by letter, or paged through, shows mostly the same messages each time.
    Messages are stored in chunks of Zstandard frames that can be decompressed one by one. The cache contains
    the frames that were read, and evicts whole chunks.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._version = DataVersion(db)
        self._chunks = _ChunkCache(db)
        self._chunk_starts: dict[int, list[int]] = {}  # by fragment
        self._updated: dict[int, set[int]] = {}  # positions of updated messages by fragment

    def messages(
        self, positions: Sequence[FragmentPosition], required_bytes: tuple[bytes, ...] = ()
    ) -> dict[FragmentPosition, Message]:
        """Return the messages at these positions, with later updates. Missing messages are omitted.

        Messages can be omitted if their encoded form does not contain all `required_bytes`. That is
        checked before decoding.
        """
        if self._version.has_changed():
            self._chunks = _ChunkCache(self._db)
            self._chunk_starts.clear()
            self._updated.clear()
        self._load_positions({fragment_id for fragment_id, _ in positions})
        found = self._read_updates(
            [position for position in positions if position[1] in self._updated[position[0]]]
        )
        by_chunk: defaultdict[FragmentPosition, list[int]] = defaultdict(list)
        for fragment_id, position in positions:
            starts = self._chunk_starts[fragment_id]
            index = bisect_right(starts, position)
            if index and (fragment_id, position) not in found:
                start = starts[index - 1]
                by_chunk[fragment_id, start].append(position - start)
        for (fragment_id, start), frame, offsets in self._chunks.frames(by_chunk):
            for offset, message in frame.messages(offsets, required_bytes):
                found[fragment_id, start + offset] = message
        return found

    def _load_positions(self, fragment_ids: set[int]) -> None:
        """Load the positions of chunks and of updated messages for new fragments."""
        missing = fragment_ids - self._chunk_starts.keys()
        if not missing:
            return
        self._chunk_starts |= self._positions("message_chunk", missing)
        updated = self._positions("message_update", missing)
        self._updated |= {fragment_id: set(positions) for fragment_id, positions in updated.items()}

    def _positions(self, table: str, fragment_ids: set[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {fragment_id: [] for fragment_id in fragment_ids}
        for fragment_id, position in self._db.execute(
            f"select fragment_id, position from {table}"  # noqa: S608 - a constant
            " where fragment_id in (select value from json_each(?)) order by fragment_id, position",
            [msgspec.json.encode(fragment_ids).decode()],
        ):
            found[fragment_id].append(position)
        return found

    def _read_updates(self, positions: Sequence[FragmentPosition]) -> dict[FragmentPosition, Message]:
        return {
            position: decode_chunk(body)[0]
            for position in positions
            for (body,) in self._db.execute(
                "select body from message_update where fragment_id = ? and position = ?", position
            )
        }


class _DecompressedFrame:
    """Consecutive messages of a chunk, decoded on first use."""

    def __init__(self, encoded: bytes, first: int) -> None:
        self._encoded = encoded
        self._first = first  # offset of the first message in the chunk

    @cached_property
    def _chunk(self) -> Chunk:
        return Chunk(self._encoded)

    def messages(
        self, offsets: Sequence[int], required_bytes: Sequence[bytes] = ()
    ) -> Iterator[tuple[int, Message]]:
        """Return the messages at these offsets that contain `required_bytes` in their encoded form."""
        if not all(required in self._encoded for required in required_bytes):
            return
        first, chunk = self._first, self._chunk
        for offset in offsets:
            index = offset - first
            if index < len(chunk) and (not required_bytes or chunk.contains(index, *required_bytes)):
                yield offset, chunk.message(index)


class _CachedChunk:
    """The decompressed frames of one chunk."""

    def __init__(self, frames: SeekTable | None) -> None:
        self._frames = frames  # None: the whole chunk is treated as one frame
        self.decompressed: dict[int, _DecompressedFrame] = {}  # by index of the frame
        self.size_bytes = 0

    def by_frame(self, offsets: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """Group offsets of messages by the index of their frame."""
        if self._frames is None:
            return {0: offsets}
        found: defaultdict[int, list[int]] = defaultdict(list)
        for offset in offsets:
            found[self._frames.frame_index(offset)].append(offset)
        return found

    def compressed_frame(self, body: bytes, index: int) -> bytes:
        return body if self._frames is None else self._frames.frame(body, index)

    def add(self, index: int, encoded: bytes) -> None:
        """Add a decompressed frame."""
        if self._frames is None:
            self.decompressed[index] = _DecompressedFrame(encoded, 0)
        else:
            frame = _DecompressedFrame(
                frame_as_list(encoded, self._frames, index), self._frames.first_positions[index]
            )
            self.decompressed[index] = frame
        self.size_bytes += len(encoded)


class _ChunkCache:
    """LRU cache of the chunks of one version of the archive."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._reader = BodyReader(db, max_cache_bytes=MAX_DELTA_BASE_BYTES)
        self._chunks: LRUCache[FragmentPosition, _CachedChunk] = LRUCache(
            MAX_CACHE_BYTES, lambda chunk: chunk.size_bytes
        )

    def frames(
        self, offsets_by_chunk: Mapping[FragmentPosition, Sequence[int]]
    ) -> Iterator[tuple[FragmentPosition, _DecompressedFrame, Sequence[int]]]:
        """Return the frames with the messages at these offsets.

        Each result is the position of a chunk, one of its frames, and the requested offsets in that frame.
        A chunk that was just deleted by another process is omitted.
        """
        missing: list[FragmentPosition] = []
        for start, offsets in offsets_by_chunk.items():
            chunk = self._chunks.get(start)
            if chunk is not None:
                by_frame = chunk.by_frame(offsets)
                if by_frame.keys() <= chunk.decompressed.keys():
                    for index, in_frame in by_frame.items():
                        yield start, chunk.decompressed[index], in_frame
                    continue
            missing.append(start)
        for start, body in self._bodies(missing) if missing else ():
            chunk = self._chunks.get(start) or _new_chunk(body, offsets_by_chunk[start])
            for index, in_frame in chunk.by_frame(offsets_by_chunk[start]).items():
                if index not in chunk.decompressed:
                    chunk.add(index, self._reader.decode(chunk.compressed_frame(body, index)))
                    self._chunks.put(start, chunk)
                yield start, chunk.decompressed[index], in_frame

    def _bodies(self, starts: Sequence[FragmentPosition]) -> Iterator[tuple[FragmentPosition, bytes]]:
        rows = self._db.execute(
            "select c.fragment_id, c.position, c.body from json_each(?) j cross join message_chunk c"
            " on c.fragment_id = json_extract(j.value, '$[0]')"
            " and c.position = json_extract(j.value, '$[1]')",
            [msgspec.json.encode(starts).decode()],
        )
        return (((fragment_id, position), body) for fragment_id, position, body in rows)


def _new_chunk(body: bytes, offsets: Sequence[int]) -> _CachedChunk:
    """Return a chunk without frames. If most frames are requested, the chunk is decompressed as a whole."""
    frames = read_seek_table(body)
    if (
        frames is not None
        and 2 * len({frames.frame_index(offset) for offset in offsets}) > len(frames.first_positions) - 1
    ):
        return _CachedChunk(None)
    return _CachedChunk(frames)
