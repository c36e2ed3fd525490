"""Decode and encode events. Importing `json` would double the time of a start."""

from __future__ import annotations

import os
from _json import encode_basestring_ascii, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["LongText", "decode", "encode"]

LONG_BYTES = 256 * 1024  # of a string that is not decoded
_MAX_QUOTES = 4_000
_MAX_BACKSLASHES = 64  # before a quote


class LongText:
    """A long string, such as the content of a file. It is decoded only if its text is needed."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self._data = data
        self._start = start
        self._end = end

    def __len__(self) -> int:
        """Return the size as it was sent: bytes, with escape sequences."""
        return self._end - self._start

    def text(self) -> str:
        """Return the decoded text."""
        text: str = _scan(self._data[self._start - 1 : self._end + 1].decode("utf-8", "replace"))
        return text

    def count_lines(self) -> int:
        """Return the number of lines."""
        data, start, end = self._data, self._start, self._end
        # An escaped backslash before an "n", and unusual ways to write a newline.
        if any(data.find(part, start, end) >= 0 for part in (b"\\\\n", b"\\u000", b"\n")):
            text = self.text()
            return text.count("\n") + (not text.endswith("\n"))
        return data.count(b"\\n", start, end) + (not data.endswith(b"\\n", start, end))


class _ScannerOptions:
    """What the JSON scanner of the standard library asks of a decoder."""

    strict = False
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def decode(data: bytes) -> Any:
    """Decode a JSON document, with a `LongText` for a long string in an object.

    Raises `ValueError`, `RecursionError` or `StopIteration` if it is not JSON.
    """
    long = _find_long(data) if len(data) > LONG_BYTES else []
    key = os.urandom(12).hex()
    parts: list[bytes] = []
    end = 0
    for number, (start, following) in enumerate(long):
        parts += [data[end:start], f"{key}{number}".encode()]
        end = following
    if long:
        texts = {f"{key}{number}": LongText(data, *place) for number, place in enumerate(long)}
        value = _scan(_to_text(b"".join([*parts, data[end:]])))
        _replace(value, texts)
        return value
    return _scan(_to_text(data))


def _to_text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace")  # Cursor writes a byte order mark on Windows


def _scan(text: str) -> Any:
    text = text.strip()
    value, end = make_scanner(_ScannerOptions)(text, 0)  # type: ignore[arg-type]
    if end != len(text):
        raise ValueError(end)
    return value


def _find_long(data: bytes) -> list[tuple[int, int]]:
    """Return start and end of the long strings that are members of an object.

    The search stops after many quotes. The rest is decoded faster than searched.
    """
    found: list[tuple[int, int]] = []
    start, at = -1, -1  # of the open string, of the quote
    for _ in range(_MAX_QUOTES):
        at = data.find(b'"', at + 1)
        if at < 0:
            break
        if start < 0:
            start = at + 1
            continue
        before = data[max(start, at - _MAX_BACKSLASHES) : at]
        backslashes = len(before) - len(before.rstrip(b"\\"))
        if backslashes == _MAX_BACKSLASHES:
            break
        if backslashes % 2 == 0:
            if at - start > LONG_BYTES and data[start - 3 : start - 1].rstrip(b" ").endswith(b":"):
                found.append((start, at))
            start = -1
    return found


def _replace(value: Any, texts: dict[str, LongText]) -> None:
    """Replace the members of objects that stand for a long string."""
    if isinstance(value, dict):
        for name, item in value.items():
            if isinstance(item, str):
                value[name] = texts.get(item, item)
            else:
                _replace(item, texts)
    elif isinstance(value, list):
        for item in value:
            if type(item) is not str:  # most are lines of a patch
                _replace(item, texts)


def encode(value: Any) -> str:
    """Encode a value as JSON in ASCII."""
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        members = ",".join([f"{encode(str(name))}:{encode(item)}" for name, item in value.items()])
        return f"{{{members}}}"
    if isinstance(value, list):
        return f"[{','.join(map(encode, value))}]"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "null"
    return repr(value)
