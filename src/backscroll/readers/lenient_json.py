"""Decode JSON that a strict parser rejects.

Tools write lone surrogates, raw control characters, numbers that exceed 64 bits, truncated UTF-8 sequences,
and NULs after a crash. Only the decoded value is repaired; the stored bytes stay unchanged.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["FAILURES", "clean_text", "load", "load_if_text", "scan"]

# Exceptions that decoding can raise.
FAILURES = (msgspec.MsgspecError, ValueError, RecursionError)

_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_ATTEMPTS = 1000  # start positions tried in one damaged text
_decoder = json.JSONDecoder(strict=False)


def clean_text(data: bytes) -> str:
    """Return the text without NULs and byte order marks. Invalid UTF-8 becomes U+FFFD."""
    return data.replace(b"\x00", b"").decode("utf-8", "replace").strip("\ufeff \t\r\n\v\f")


def load(data: bytes | str) -> Any:
    """Decode a document. Raises one of FAILURES."""
    text = data if isinstance(data, str) else clean_text(data)
    return _repair(_decoder.decode(text))


def load_if_text(value: Any) -> Any:
    """Decode a text that contains a document. Any other value is returned unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return load(value)
    except FAILURES:
        return value


def scan(text: str, starts: re.Pattern[str]) -> Iterator[tuple[int, int, Any]]:
    """Yield every document in a text with any number of them: ``(start, end, value)``.

    If a document cannot be decoded, the next match of ``starts`` is tried.
    """
    at = 0
    for _ in range(MAX_ATTEMPTS):
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
            repaired = _repair(value)
        except RecursionError:  # deeper than anything that a tool writes
            at = end
            continue
        yield at, end, repaired
        at = end


def _repair(value: Any) -> Any:
    """Return the document without values that UTF-8 or 64 bits cannot represent."""
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value) if not value.isascii() else value
        case dict():
            return {_repair(key): _repair(item) for key, item in value.items()}
        case list():
            return [_repair(item) for item in value]
        case int() if not -(2**63) <= value < 2**64:
            return float(value) if abs(value) < 10**300 else None
        case float() if value != value or value in (float("inf"), float("-inf")):
            return None
    return value
