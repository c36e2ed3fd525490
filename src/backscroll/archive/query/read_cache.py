"""Read cache for one connection. Invalidated when the archive changes.

A search that is typed letter by letter, or paged through, shows mostly the same messages each time.
"""

import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count

import msgspec

from backscroll.archive.query.chunk_cache import ChunkCache, FragmentPosition
from backscroll.archive.query.workspaces import KnownWorkspace, known_workspaces
from backscroll.archive.storage.codec import decode_chunk
from backscroll.model import Message, SessionSummary
from backscroll.readers.lru_cache import LRUCache

__all__ = ["CachedSession", "FragmentPosition", "ReadCache"]

MAX_SESSIONS = 2000

CachedSession = tuple[SessionSummary, int | None]  # a session, and its fragment if it has only one


class ReadCache:
    """Cached sessions, messages, list positions and workspaces."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._version: tuple[int, int] | None = None
        self._chunks = ChunkCache(db)
        self._sessions: LRUCache[int, CachedSession] = LRUCache(MAX_SESSIONS)
        self._chunk_starts: dict[int, list[int]] = {}  # by fragment
        self._updated: dict[int, set[int]] = {}  # positions of updated messages by fragment
        self._list_indexes: dict[int, int] | None = None
        self._workspaces: list[KnownWorkspace] | None = None

    def messages(
        self, positions: Sequence[FragmentPosition], required_bytes: tuple[bytes, ...] = ()
    ) -> dict[FragmentPosition, Message]:
        """Return the messages at these positions, with later updates. Missing messages are omitted.

        Messages can be omitted if their encoded form does not contain all `required_bytes`. That is
        checked before decoding.
        """
        self._invalidate_if_changed()
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

    def sessions(
        self, ids: set[int], read: Callable[[set[int]], dict[int, CachedSession]]
    ) -> dict[int, CachedSession]:
        """Return the sessions with these ids. Call `read` for those that are not in the cache."""
        self._invalidate_if_changed()
        found = {id_: session for id_ in ids if (session := self._sessions.get(id_)) is not None}
        missing = ids - found.keys()
        if missing:
            for id_, session in read(missing).items():
                found[id_] = session
                self._sessions.put(id_, session)
        return found

    def list_indexes(self) -> dict[int, int]:
        """Return the 1-based positions of all sessions in the complete list, by id."""
        self._invalidate_if_changed()
        if self._list_indexes is None:
            (ids,) = self._db.execute(
                "select json_group_array(number) from (select number from conversations"
                " where visibility in ('listed', 'archived') order by updated_at desc, number desc)"
            ).fetchone()
            self._list_indexes = dict(zip(msgspec.json.decode(ids, type=list[int]), count(1), strict=False))
        return self._list_indexes

    def workspaces(self) -> list[KnownWorkspace]:
        """Return all workspaces of the archive."""
        self._invalidate_if_changed()
        if self._workspaces is None:
            self._workspaces = known_workspaces(self._db)
        return self._workspaces

    def _invalidate_if_changed(self) -> None:
        # data_version changes with commits of other connections, total_changes with our own.
        (data_version,) = self._db.execute("pragma data_version").fetchone()
        version = data_version, self._db.total_changes
        if version != self._version:
            self._version = version
            self._chunks = ChunkCache(self._db)
            self._sessions.clear()
            self._chunk_starts.clear()
            self._updated.clear()
            self._list_indexes = None
            self._workspaces = None

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
