"""Inspect a write-ahead log without SQLite.

SQLite deletes a log without committed transactions when the last connection closes, even a read-only
connection without locks. Therefore the log of another program is inspected before SQLite opens it.
"""

import struct
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from backscroll.errors import DatabaseUnreadableError

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = 0x377F0682  # lowest bit set: checksums of big-endian words
_VERIFIED_FRAMES = 2_000  # their checksums are verified (0.1 ms per page); later ones only need a valid salt


def has_commits(log: Path) -> bool:
    """Return whether the log has a committed transaction; False if there is no log."""
    try:
        file = log.open("rb")
    except FileNotFoundError:
        return False
    except OSError as error:
        raise DatabaseUnreadableError(f"{log} cannot be opened: {error.strerror}.", log) from error
    with file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return False
        magic, _, page_size, _, *salt, sum1, sum2 = _HEADER.unpack(header)
        if magic & ~1 != _MAGIC or not 512 <= page_size <= 65536:
            return False
        order = ">" if magic & 1 else "<"
        if _checksum(header[:24], (0, 0), order) != (sum1, sum2):
            return False
        return _finds_commit(file, page_size, salt=tuple(salt), start=(sum1, sum2), order=order)


def _finds_commit(
    file: BinaryIO, page_size: int, *, salt: tuple[int, ...], start: tuple[int, int], order: str
) -> bool:
    sums, number = start, 0
    while len(frame := file.read(_FRAME.size + page_size)) == _FRAME.size + page_size:
        _, size_after_commit, salt1, salt2, sum1, sum2 = _FRAME.unpack_from(frame)
        if (salt1, salt2) != salt:
            return False
        if number < _VERIFIED_FRAMES:
            sums = _checksum(frame[:8], sums, order)
            sums = _checksum(frame[_FRAME.size :], sums, order)
            if sums != (sum1, sum2):
                return False
        if size_after_commit:
            return True
        number += 1
    return False


def _checksum(data: bytes, start: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = start
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(islice(words, 0, None, 2), islice(words, 1, None, 2), strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second
