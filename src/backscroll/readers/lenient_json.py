"""Decode JSON that a strict parser rejects, and find text and images in documents of unknown structure.

Tools write lone surrogates, raw control characters, numbers that exceed 64 bits, truncated UTF-8 sequences,
and NULs after a crash. Only the decoded value is repaired; the stored bytes stay unchanged.
"""

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import msgspec

# Exceptions that decoding can raise.
FAILURES = (msgspec.MsgspecError, ValueError, RecursionError)

MAX_DEPTH = 200  # nested levels of a document; decoding takes two frames per level of 1,000
TOO_DEEP = "[nested too deeply]"  # replaces what is nested deeper
MAX_ATTEMPTS = 1000  # start positions tried in one damaged text
MAX_TEXT_DEPTH = 24  # nested levels that are searched for text
MAX_WORD_CHARS = 200  # longer strings without white space are data
MIN_IMAGE_CHARS = 32
MAX_IMAGE_DEPTH = 40  # nested levels that are searched for images
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_decoder = json.JSONDecoder(strict=False)

# Fields without text.
_FIELDS_WITHOUT_TEXT = frozenset(
    {"type", "id", "tool_use_id", "toolCallId", "file_id", "signature", "data", "encrypted_content"}
    | {"encrypted_index", "mimeType", "media_type", "cache_control", "providerOptions"}
)
# Only these types are images. An SVG could contain a script.
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


def load(data: bytes | str) -> Any:
    """Decode a document. Raises one of FAILURES."""
    text = data if isinstance(data, str) else clean_text(data)
    return _repair(_decoder.decode(text))


def load_object(data: bytes | str) -> dict[str, Any]:
    """Decode an object. If it cannot be decoded or is of another type, return an empty one."""
    try:
        document = load(data)
    except FAILURES:
        return {}
    return document if isinstance(document, dict) else {}


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


def limit_depth(text: str) -> str:
    """Replace what is nested deeper than `MAX_DEPTH` levels by `TOO_DEEP`. A value without an end stays."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return text
    kept: list[str] = []
    depth = at = start = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        match found[0]:
            case "[" | "{":
                depth += 1
                if depth == MAX_DEPTH + 1:
                    start = found.start()
            case "]" | "}":
                if depth == MAX_DEPTH + 1:
                    kept += [text[at:start], f'"{TOO_DEEP}"']
                    at = found.end()
                depth = max(0, depth - 1)
    return "".join([*kept, text[at:]])


def clean_text(data: bytes) -> str:
    """Return the text without NULs and byte order marks. Invalid UTF-8 becomes U+FFFD."""
    return data.replace(b"\x00", b"").decode("utf-8", "replace").strip("\ufeff \t\r\n\v\f")


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


def text_in(value: Any, depth: int = 0) -> str:
    """Return all text in a value, without data and ids."""
    if isinstance(value, str):
        return value if len(value) <= MAX_WORD_CHARS or any(map(str.isspace, value)) else ""
    if depth > MAX_TEXT_DEPTH or not isinstance(value, list | dict):
        return ""
    inner = value
    if isinstance(value, dict):
        inner = [item for name, item in value.items() if name not in _FIELDS_WITHOUT_TEXT]
    return "\n".join(filter(None, (text_in(item, depth + 1) for item in inner)))


def embedded_images(record: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield media type and content of each image in a record, without repetitions.

    An image is base64 text, or bytes as an object with numeric keys. A record that is not JSON has none.
    """
    try:
        document = msgspec.json.decode(record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    seen: set[bytes] = set()
    for content in _image_candidates(document, 0):
        media_type = image_type(content)
        if media_type is not None and content not in seen:
            seen.add(content)
            yield media_type, content


def _image_candidates(value: Any, depth: int) -> Iterator[bytes]:
    if depth > MAX_IMAGE_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _image_candidates(item, depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in ("data", "base64") and isinstance(item, str) and len(item) >= MIN_IMAGE_CHARS:
                yield _decode_base64(item)
            elif name == "data" and isinstance(item, dict) and "0" in item:
                yield _decode_numbers(item)
            else:
                yield from _image_candidates(item, depth + 1)


def _decode_base64(text: str) -> bytes:
    try:
        return b64decode(text.rpartition(",")[2], validate=True)
    except (binascii.Error, ValueError):
        return b""


def _decode_numbers(numbers: dict[str, Any]) -> bytes:
    """Return the bytes of ``{"0": 137, "1": 80, …}``, as Cursor stores them."""
    try:
        return bytes(numbers[str(index)] for index in range(len(numbers)))
    except (KeyError, TypeError, ValueError):
        return b""


def image_type(content: bytes) -> str | None:
    """Return the media type of an image that is safe to show, None for anything else."""
    for signature, media_type in _SIGNATURES.items():
        if content.startswith(signature):
            return media_type if media_type != "image/webp" or content[8:12] == b"WEBP" else None
    return None
