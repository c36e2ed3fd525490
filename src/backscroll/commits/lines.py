"""Hashes and text of lines that stay the same when code is reformatted."""

from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise
from zlib import adler32, crc32

import msgspec

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
        if len(line) >= MIN_LINE_CHARS:
            hashes.append(_hash(line))
    return hashes


def code_lines(path: str, lines: Sequence[bytes]) -> Sequence[bytes]:
    """Return the lines of a file as an assistant writes them: those of a notebook without JSON syntax."""
    if not path.endswith(".ipynb"):
        return lines
    return [_notebook_line(line) for line in lines]


def _notebook_line(line: bytes) -> bytes:
    text = line.strip().removesuffix(b",")
    if not text.startswith(b'"') or not text.endswith(b'"'):
        return line
    try:
        return msgspec.json.decode(text, type=str).rstrip("\n").encode("utf-8", "replace")
    except msgspec.DecodeError:
        return line  # a field: "key": "value"


def normalize_lines(text: bytes) -> list[bytes]:
    """Return the lines of a text as they are hashed."""
    return [line.rstrip(b",;") for line in text.translate(_QUOTES, _WHITE_SPACE).split(b"\n")]


def hash_text(text: bytes) -> "array[int]":
    """Return the hashes of the lines of a text, in order, also repeated ones. Short lines have none."""
    return array(LINE_FORMAT, filter(None, map(_hash, normalize_lines(text))))


def hash_each(lines: Iterable[bytes]) -> "array[int]":
    """Return the hash of each line, 0 for a line that is too short."""
    lines = list(lines)
    return array(LINE_FORMAT, map(_hash, normalize_lines(b"\n".join(lines)) if lines else ()))


def _hash(line: bytes) -> int:
    length = len(line)
    if length < MIN_LINE_CHARS:
        return 0
    hashed = (crc32(line) << 32 | adler32(line)) & ~_LENGTH_MASK
    return hashed | (length if length < _LENGTH_MASK else _LENGTH_MASK)


def line_weight(line_hash: int) -> float:
    """Return how much a line says by its length: from 0.17 for 4 characters to 1 for 24 and more."""
    return min(1.0, (line_hash & _LENGTH_MASK) / _FULL_WEIGHT_CHARS)


class EditText:
    """Lines that an edit adds, normalized."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self.lines: set[bytes] = set()
        self.pairs: set[tuple[bytes, bytes]] = set()
        self._ends: set[int] = {0}  # of lines in the joined text
        joined = bytearray()
        for text in texts:
            lines = normalize_lines(text)
            self.lines.update(lines)
            self.pairs.update(pairwise(lines))
            for line in lines:
                joined += without_commas(line)
                self._ends.add(len(joined))
            joined += b"\n"  # separates files
            self._ends.add(len(joined))
        self.joined = bytes(joined)

    def contains(self, joined: bytes) -> bool:
        """Return whether whole lines, joined, are the text, however it is divided into lines."""
        start = self.joined.find(joined)
        while start >= 0:
            if start in self._ends and start + len(joined) in self._ends:
                return True
            start = self.joined.find(joined, start + 1)
        return False


def without_commas(line: bytes) -> bytes:
    """Return a line without commas. Formatters add one if they wrap a list."""
    return line.replace(b",", b"")
