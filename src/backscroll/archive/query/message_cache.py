"""Cache of messages. Invalidated when the archive changes.

A search that is typed letter by letter, or paged through, shows mostly the same messages each time.
Messages are stored in chunks of zstd frames that can be decompressed one by one. The cache contains the
frames that were read, and evicts whole chunks.
"""

import sqlite3
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from backscroll.archive.query.session_cache import DataVersion
from backscroll.archive.storage.codec import Chunk, decode_chunk, frame_as_list
from backscroll.archive.storage.delta import BodyReader
from backscroll.archive.storage.seekable import SeekTable, read_seek_table
from backscroll.lru_cache import LRUCache
from backscroll.model import Message

__all__ = ["FragmentPosition", "MessageCache"]

MAX_CACHE_BYTES = 16 * 1024 * 1024
MAX_DELTA_BASE_BYTES = 4 * 1024 * 1024
BATCH_BYTES = 1024 * 1024  # compressed bytes that are decompressed in one batch

FragmentPosition = tuple[int, int]  # id of a fragment, position of a message or of a chunk's first message


class DecompressedFrame:
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
        self.decompressed: dict[int, DecompressedFrame] = {}  # by index of the frame
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
            self.decompressed[index] = DecompressedFrame(encoded, 0)
        else:
            frame = DecompressedFrame(
                frame_as_list(encoded, self._frames, index), self._frames.first_positions[index]
            )
            self.decompressed[index] = frame
        self.size_bytes += len(encoded)


# Position of a chunk, the chunk, and the requested offsets by frame.
_Request = tuple[FragmentPosition, _CachedChunk, Mapping[int, Sequence[int]]]


class ChunkCache:
    """LRU cache of the chunks of one version of the archive."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._reader = BodyReader(db, max_cache_bytes=MAX_DELTA_BASE_BYTES)
        self._chunks: LRUCache[FragmentPosition, _CachedChunk] = LRUCache(
            MAX_CACHE_BYTES, lambda chunk: chunk.size_bytes
        )

    def frames(
        self, offsets_by_chunk: Mapping[FragmentPosition, Sequence[int]]
    ) -> Iterator[tuple[FragmentPosition, DecompressedFrame, Sequence[int]]]:
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
        for start, chunk, by_frame in self._read(missing, offsets_by_chunk) if missing else ():
            for index, in_frame in by_frame.items():
                yield start, chunk.decompressed[index], in_frame

    def _read(
        self, starts: Sequence[FragmentPosition], offsets_by_chunk: Mapping[FragmentPosition, Sequence[int]]
    ) -> Iterator[_Request]:
        """Read chunks from the archive and decompress the requested frames in batches."""
        rows = self._db.execute(
            "select c.fragment_id, c.position, c.body from json_each(?) j cross join message_chunk c"
            " on c.fragment_id = json_extract(j.value, '$[0]')"
            " and c.position = json_extract(j.value, '$[1]')",
            [msgspec.json.encode(starts).decode()],
        )
        requests: list[_Request] = []
        compressed: list[bytes] = []
        batch_bytes = 0
        for fragment_id, position, body in rows:
            start = fragment_id, position
            chunk = self._chunks.get(start) or _new_chunk(body, offsets_by_chunk[start])
            by_frame = chunk.by_frame(offsets_by_chunk[start])
            requests.append((start, chunk, by_frame))
            frames = [
                chunk.compressed_frame(body, index) for index in by_frame if index not in chunk.decompressed
            ]
            compressed += frames
            batch_bytes += sum(map(len, frames))
            if batch_bytes > BATCH_BYTES:
                self._decompress(requests, compressed)
                yield from requests
                requests, compressed, batch_bytes = [], [], 0
        self._decompress(requests, compressed)
        yield from requests

    def _decompress(self, requests: Sequence[_Request], compressed: Sequence[bytes]) -> None:
        """Decompress the missing frames, which are in the same order as in the requests."""
        decompressed = iter(self._reader.decode_all(compressed))
        for start, chunk, by_frame in requests:
            for index in by_frame:
                if index not in chunk.decompressed:
                    chunk.add(index, next(decompressed))
                    self._chunks.put(start, chunk)


def _new_chunk(body: bytes, offsets: Sequence[int]) -> _CachedChunk:
    """Return a chunk without frames. If most frames are requested, the chunk is decompressed as a whole."""
    frames = read_seek_table(body)
    if (
        frames is not None
        and 2 * len({frames.frame_index(offset) for offset in offsets}) > len(frames.first_positions) - 1
    ):
        return _CachedChunk(None)
    return _CachedChunk(frames)


class MessageCache:
    """Cached messages of one connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._version = DataVersion(db)
        self._chunks = ChunkCache(db)
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
            self._chunks = ChunkCache(self._db)
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
