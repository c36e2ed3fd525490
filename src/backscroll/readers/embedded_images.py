"""Images that are embedded in a JSON record: base64 text, or bytes as an object with numeric keys."""

import binascii
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["embedded_images", "image_type"]

MIN_IMAGE_CHARS = 32
MAX_DEPTH = 40
# Only these types are images. An SVG could contain a script.
_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}


def embedded_images(record: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield media type and content of each image, without repetitions. A record that is not JSON has none."""
    try:
        document = msgspec.json.decode(record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    seen: set[bytes] = set()
    for content in _candidates(document, 0):
        media_type = image_type(content)
        if media_type is not None and content not in seen:
            seen.add(content)
            yield media_type, content


def _candidates(value: Any, depth: int) -> Iterator[bytes]:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _candidates(item, depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in ("data", "base64") and isinstance(item, str) and len(item) >= MIN_IMAGE_CHARS:
                yield _decode_base64(item)
            elif name == "data" and isinstance(item, dict) and "0" in item:
                yield _decode_numbers(item)
            else:
                yield from _candidates(item, depth + 1)


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
