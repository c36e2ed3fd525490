"""Hashes of lines that stay the same when code is reformatted."""

from array import array
from collections.abc import Iterable
from zlib import adler32, crc32

__all__ = ["LINE_FORMAT", "MIN_LINE_CHARS", "hash_line", "hash_lines", "line_weight", "normalize_lines"]

LINE_FORMAT = "Q"  # of an array of hashes
MIN_LINE_CHARS = 4  # shorter lines, such as "}" or "else:", do not distinguish sessions
_FULL_WEIGHT_CHARS = 24
_LENGTH_MASK = 63

# Formatters change white space, quotes, and commas and semicolons at the end of a line.
_QUOTES = bytes.maketrans(b"'`", b'""')
_WHITE_SPACE = b" \t\r\v\f"


def hash_lines(lines: Iterable[bytes]) -> "array[int]":
    """Return the distinct hashes of lines, in order. Lines that are too short have none.

    The last six bits of a hash are the length of the normalized line, at most 63. `line_weight` reads them,
    so that the lines themselves need not be stored. CRC-32 and Adler-32 take half the time of BLAKE2b.
    """
    text = b"\n".join(lines).translate(_QUOTES, _WHITE_SPACE)
    hashes = array(LINE_FORMAT)
    for line in dict.fromkeys(text.split(b"\n")):
        line = line.rstrip(b",;")
        length = len(line)
        if length >= MIN_LINE_CHARS:
            hashed = (crc32(line) << 32 | adler32(line)) & ~_LENGTH_MASK
            hashes.append(hashed | (length if length < _LENGTH_MASK else _LENGTH_MASK))
    return hashes


def normalize_lines(text: bytes) -> list[bytes]:
    """Return the lines of a text as they are hashed."""
    return [line.rstrip(b",;") for line in text.translate(_QUOTES, _WHITE_SPACE).split(b"\n")]


def hash_line(line: bytes) -> int | None:
    """Return the hash of one line, None if it is too short."""
    hashes = hash_lines([line])
    return hashes[0] if hashes else None


def line_weight(line_hash: int) -> float:
    """Return how much a line says by its length: from 0.17 for 4 characters to 1 for 24 and more."""
    return min(1.0, (line_hash & _LENGTH_MASK) / _FULL_WEIGHT_CHARS)
