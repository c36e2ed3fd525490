"""JSON that a strict parser refuses, read the way its writer meant it.

Tools write what their language lets them: lone surrogates, raw control
characters, numbers too large for anyone, bytes of a character cut in half, runs
of NUL after a crash. What is mended here is only the spelling; the raw bytes
stay where they are.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["FAILURES", "clean_text", "load", "scan"]

# What decoding a hostile document can raise.
FAILURES = (msgspec.MsgspecError, ValueError, RecursionError)

_SURROGATE = re.compile("[\ud800-\udfff]")
_ATTEMPTS = 1000  # how many starts are tried in one broken text
_decoder = json.JSONDecoder(strict=False)


def clean_text(data: bytes) -> str:
    """Text without NULs and byte order marks; bytes that are no UTF-8 become U+FFFD."""
    return data.replace(b"\x00", b"").decode("utf-8", "replace").strip("\ufeff \t\r\n\v\f")


def load(data: bytes | str) -> Any:
    """A whole document, leniently. Raises one of FAILURES when it is none."""
    text = data if isinstance(data, str) else clean_text(data)
    return _mended(_decoder.decode(text))


def scan(text: str, starts: re.Pattern[str]) -> Iterator[tuple[int, int, Any]]:
    """Every document in a text that holds more, or less, than one: ``(from, to, value)``.

    Where a document cannot be read, the next place that ``starts`` matches is tried.
    """
    at = 0
    for _ in range(_ATTEMPTS):
        while at < len(text) and text[at].isspace():
            at += 1
        if at >= len(text):
            return
        try:
            value, end = _decoder.raw_decode(text, at)
        except FAILURES:
            found = starts.search(text, at + 1)
            if found is None:
                return
            at = found.start()
            continue
        try:
            mended = _mended(value)
        except RecursionError:  # nested deeper than anything a tool writes
            at = end
            continue
        yield at, end, mended
        at = end


def _mended(value: Any) -> Any:
    """The same document with nothing in it that UTF-8 or 64 bits cannot hold."""
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value) if not value.isascii() else value
        case dict():
            return {_mended(key): _mended(item) for key, item in value.items()}
        case list():
            return [_mended(item) for item in value]
        case int() if not -(2**63) <= value < 2**64:
            return float(value) if abs(value) < 10**300 else None
        case float() if value != value or value in (float("inf"), float("-inf")):
            return None
    return value
