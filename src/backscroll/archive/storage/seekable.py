"""Seekable chunks: several Zstandard frames and a seek table, so that one message is read without the others.

Frames are cut between messages. The seek table follows them in a skippable frame, so that decompressing the
whole body yields the same bytes as if it had one frame. A body of one frame has no seek table.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from struct import Struct
from struct import pack as pack_values
from struct import unpack_from as unpack_values
from zlib import crc32

import msgspec

__all__ = ["ZSTD_MAGIC", "SeekTable", "append_seek_table", "frame_boundaries", "read_seek_table"]

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # first bytes of every compressed frame
_MIN_FRAME_BYTES = 24 * 1024  # smaller frames compress worse and decompress slower as a whole
_MAX_FRAME_BYTES = 32 * 1024  # exceeded only by a single large message
_MIN_REMAINDER_BYTES = 8 * 1024  # less than this is put into one frame with a large message
_TABLE_FORMAT = "<%dI"  # the message count of each frame, then the byte count of each frame
_SKIPPABLE_HEADER = Struct("<4sI")  # magic, size of the content
_SKIPPABLE_MAGIC = b"\x5b\x2a\x4d\x18"
_FOOTER = Struct("<II4s")  # CRC-32 of the table, frame count, magic
_FOOTER_MAGIC = b"\xf5frm"  # last bytes of a body with a seek table


class SeekTable(msgspec.Struct, frozen=True, gc=False):
    """Position of the first message and offset of the first byte of each frame; the last items are totals."""

    first_positions: tuple[int, ...]
    offsets: tuple[int, ...]

    def frame_index(self, position: int) -> int:
        """Return the frame that contains a message; the last frame if the position is too large."""
        return bisect_right(self.first_positions, position, 0, len(self.first_positions) - 1) - 1

    def frame(self, body: bytes, index: int) -> bytes:
        """Return one compressed frame of the body."""
        return body[self.offsets[index] : self.offsets[index + 1]]


def frame_boundaries(ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the past-the-end message of each frame, given the end offset of each message."""
    first = start = last_end = 0
    for position, end in enumerate(ends):
        size = last_end - start
        if size >= _MIN_FRAME_BYTES or (size >= _MIN_REMAINDER_BYTES and end - start > _MAX_FRAME_BYTES):
            yield first, position
            first, start = position, last_end
        last_end = end
    if ends:
        yield first, len(ends)


def append_seek_table(frames: Sequence[bytes], message_counts: Sequence[int]) -> bytes:
    """Join compressed frames to a body and append the seek table if there are several."""
    if len(frames) == 1 and not frames[0].endswith(_FOOTER_MAGIC):
        return frames[0]
    table = pack_values(_TABLE_FORMAT % (2 * len(frames)), *message_counts, *map(len, frames))
    header = _SKIPPABLE_HEADER.pack(_SKIPPABLE_MAGIC, len(table) + _FOOTER.size)
    return b"".join([*frames, header, table, _FOOTER.pack(crc32(table), len(frames), _FOOTER_MAGIC)])


def read_seek_table(body: bytes) -> SeekTable | None:
    """Return the seek table of a body. None if it has no table or a damaged one: read the whole body then."""
    if not body.endswith(_FOOTER_MAGIC) or not body.startswith(ZSTD_MAGIC) or len(body) < _FOOTER.size:
        return None
    end = len(body) - _FOOTER.size
    checksum, frame_count, _ = _FOOTER.unpack_from(body, end)
    start = end - 8 * frame_count
    if not frame_count or start < _SKIPPABLE_HEADER.size or crc32(body[start:end]) != checksum:
        return None
    values = unpack_values(_TABLE_FORMAT % (2 * frame_count), body, start)
    offsets = tuple(accumulate(values[frame_count:], initial=0))
    if offsets[-1] != start - _SKIPPABLE_HEADER.size:
        return None
    return SeekTable(tuple(accumulate(values[:frame_count], initial=0)), offsets)
