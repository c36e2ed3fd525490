"""A piece of messages in several compressed frames, so that one message is read without all the others.

The frames lie one behind the other, cut between messages, and behind them a table of where: in a frame of the
kind that Zstandard passes over, so that a body unpacked whole is what was packed, as if it had never been
cut. A body of one frame has no table, nor has any that was written before there were frames.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from struct import Struct
from struct import pack as pack_values
from struct import unpack_from as unpack_values
from typing import NamedTuple
from zlib import crc32

__all__ = ["ZSTD_MAGIC", "SeekTable", "append_seek_table", "frame_boundaries", "read_seek_table"]

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"  # what every compressed frame begins with
_ENOUGH = 24 * 1024  # bytes of a frame: fewer take more room, and longer when all of them are unpacked
_MOST = 32 * 1024  # what is larger is not unpacked at one go, unless it is one message
_FEW = 8 * 1024  # bytes that are better together with a large message than alone
_TABLE = "<%dI"  # of each frame how many messages it has, then of each how many bytes
_PASSED_OVER = Struct("<4sI")  # what the table's frame begins with, and how much of it follows
_PASS_OVER = b"\x5b\x2a\x4d\x18"
_END = Struct("<II4s")  # the table's check sum, how many frames, and the mark
_MARK = b"\xf5frm"  # a body that ends so has a table


class SeekTable(NamedTuple):
    """Where a body is cut: the first message and the first byte of each frame, and both of what is behind."""

    first_positions: tuple[int, ...]
    offsets: tuple[int, ...]

    def frame_index(self, place: int) -> int:
        """The frame that a message is in; the last one when there are not so many."""
        return bisect_right(self.first_positions, place, 0, len(self.first_positions) - 1) - 1

    def frame(self, body: bytes, number: int) -> bytes:
        """One frame of the body."""
        return body[self.offsets[number] : self.offsets[number + 1]]


def frame_boundaries(ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """From which to before which of the messages that end there a frame goes, for each frame."""
    begin = start = last = 0
    for place, end in enumerate(ends):
        size = last - start
        if size >= _ENOUGH or (size >= _FEW and end - start > _MOST):
            yield begin, place
            begin, start = place, last
        last = end
    if ends:
        yield begin, len(ends)


def append_seek_table(frames: Sequence[bytes], counts: Sequence[int]) -> bytes:
    """A body of compressed frames that have so many messages each."""
    if len(frames) == 1 and not frames[0].endswith(_MARK):
        return frames[0]
    table = pack_values(_TABLE % (2 * len(frames)), *counts, *map(len, frames))
    begin = _PASSED_OVER.pack(_PASS_OVER, len(table) + _END.size)
    return b"".join([*frames, begin, table, _END.pack(crc32(table), len(frames), _MARK)])


def read_seek_table(body: bytes) -> SeekTable | None:
    """Where a body is cut; None when it has no table, or a damaged one: then it is read whole."""
    if not body.endswith(_MARK) or not body.startswith(ZSTD_MAGIC) or len(body) < _END.size:
        return None
    end = len(body) - _END.size
    check, number, _ = _END.unpack_from(body, end)
    begin = end - 8 * number
    if not number or begin < _PASSED_OVER.size or crc32(body[begin:end]) != check:
        return None
    values = unpack_values(_TABLE % (2 * number), body, begin)
    offsets = tuple(accumulate(values[number:], initial=0))
    if offsets[-1] != begin - _PASSED_OVER.size:
        return None
    return SeekTable(tuple(accumulate(values[:number], initial=0)), offsets)
