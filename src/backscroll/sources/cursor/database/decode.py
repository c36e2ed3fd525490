"""JSON as Cursor left it, read so that one wrong field never costs the record.

Every declared field takes any value, so only text that is no JSON at all, or
is no object, is refused.
"""

import json
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from backscroll.readers import lenient_json

__all__ = [
    "UndecodableError",
    "as_int",
    "as_list",
    "as_map",
    "as_text",
    "decode",
    "decode_each",
    "decode_map",
    "storable",
    "unwrap",
]

T = TypeVar("T")

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_any = msgspec.json.Decoder().decode
_JSON_STARTS = frozenset('{["')
_LARGEST_COUNT = 2**53


class UndecodableError(ValueError):
    """Text that is not the JSON it should be; says why."""


def decode(data: bytes | Raw, shape: type[T]) -> T:
    """One document as the given shape. Raises `UndecodableError`."""
    decoder = _decoders.get(shape)
    if decoder is None:
        decoder = _decoders[shape] = msgspec.json.Decoder(shape)
    try:
        return decoder.decode(data)  # type: ignore[no-any-return]
    except lenient_json.FAILURES as error:
        return _mend(bytes(data), decoder, error)  # type: ignore[no-any-return]


def _mend(data: bytes, decoder: msgspec.json.Decoder[Any], first: Exception) -> Any:
    """A second try without the spelling mistakes; a document inside a JSON string is opened."""
    try:
        value = lenient_json.load(data)
        if isinstance(value, str):
            value = lenient_json.load(value)
        return decoder.decode(msgspec.json.encode(value))
    except lenient_json.FAILURES as error:
        reason = first if isinstance(error, msgspec.ValidationError) else error
        raise UndecodableError(str(reason) or type(reason).__name__) from error


def decode_each(data: Raw, shape: type[T]) -> tuple[list[T], list[str]]:
    """The items of a list, and why some could not be read. Anything but a list is empty."""
    if _first(data) != b"[":
        return [], []
    try:
        return decode(data, list[shape]), []  # type: ignore[valid-type]
    except UndecodableError:
        pass
    try:
        items = decode(data, list[Raw])
    except UndecodableError:
        return [], []
    good: list[T] = []
    faults: list[str] = []
    for number, item in enumerate(items):
        try:
            good.append(decode(item, shape))
        except UndecodableError as error:
            faults.append(f"item {number}: {error}")
    return good, faults


def decode_map(data: Raw, shape: type[T]) -> dict[str, T]:
    """The entries of an object that have the given shape."""
    if _first(data) != b"{":
        return {}
    try:
        return decode(data, dict[str, shape])  # type: ignore[valid-type]
    except UndecodableError:
        pass
    found: dict[str, T] = {}
    try:
        entries = decode(data, dict[str, Raw])
    except UndecodableError:
        return {}
    for key, item in entries.items():
        try:
            found[key] = decode(item, shape)
        except UndecodableError:
            continue
    return found


def _first(data: Raw) -> bytes:
    return bytes(memoryview(data)[:1])


def unwrap(value: Any, *, levels: int = 2) -> Any:
    """A value that may be JSON text, which may hold JSON text again; text that is neither stays text."""
    while levels and isinstance(value, str):
        if value[:1] not in _JSON_STARTS and value.lstrip()[:1] not in _JSON_STARTS:
            return value
        try:
            value = _load(value)
        except lenient_json.FAILURES:
            return value
        levels -= 1
    return value


def _load(text: str) -> Any:
    try:
        return _any(text)
    except lenient_json.FAILURES:
        return lenient_json.load(text.encode("utf-8", "surrogatepass"))


def storable(value: Any) -> Any:
    """The same value, with numbers that 64 bits cannot hold, which no encoder takes, made ones they can."""
    return value if _is_storable(value) else lenient_json.load(json.dumps(value))


def _is_storable(value: Any) -> bool:
    if isinstance(value, str):
        return True
    if isinstance(value, dict):
        return all(map(_is_storable, value.values()))
    if isinstance(value, list):
        return all(map(_is_storable, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**64


def as_text(value: Any) -> str:
    """The text itself, or nothing."""
    return value if isinstance(value, str) else ""


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_int(value: Any) -> int | None:
    """A whole number that somebody may have counted; None for anything else, truth values included."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return int(value) if -_LARGEST_COUNT < value < _LARGEST_COUNT else None
