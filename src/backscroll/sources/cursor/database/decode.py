"""Decode JSON tolerantly, and report what cannot be decoded.

A field with an unexpected value does not lose the record: every declared field accepts any value. Only text
that is not JSON, or not an object, is rejected.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar, get_origin

import msgspec
from msgspec import Raw

from backscroll.model.message import Origin
from backscroll.model.problem import Fault, Problem
from backscroll.model.stream import RecordCounts
from backscroll.readers import lenient_json, timestamps

T = TypeVar("T")
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_decode_any = msgspec.json.Decoder().decode
_JSON_STARTS = frozenset('{["')
_KINDS = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
_ISO_LENGTH = len("2026-09-21T14:13:20.000")
_CLOCK_TOLERANCE = timedelta(days=1)
_TOO_DEEP = "nested-too-deeply"
_MAX_INT = 2**53  # larger floats are not exact


class UndecodableError(ValueError):
    """Raised for text that is not the expected JSON. The message is the predicate of a sentence."""

    def __init__(self, predicate: str, code: str = "not-json") -> None:
        super().__init__(predicate)
        self.code = code

    def fault(self, subject: str) -> Fault:
        """Return the fault, with a sentence about the subject as its reason."""
        return Fault(self.code, f"{subject} {self}")


def decode(data: bytes | Raw, type_: type[T]) -> T:
    """Decode a document as the given type. Raises `UndecodableError`."""
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    try:
        return decoder.decode(data)  # type: ignore[no-any-return]
    except lenient_json.FAILURES:
        return _decode_leniently(bytes(data), decoder)  # type: ignore[no-any-return]


def decode_record(data: bytes | Raw, type_: type[T], subject: str) -> tuple[T, Fault | None]:
    """Decode a record. If part of it is nested too deeply, return the rest and a fault about the subject.

    Raises `UndecodableError`.
    """
    try:
        return decode(data, type_), None
    except UndecodableError as error:
        if error.code != _TOO_DEEP:
            raise
        kept = lenient_json.limit_depth(lenient_json.clean_text(bytes(data)))
        fault = Fault(_TOO_DEEP, f"{subject} has a value that is nested too deeply; the rest was read")
        return decode(kept.encode(), type_), fault


def _decode_leniently(data: bytes, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Decode with the lenient parser. A document inside a JSON string is decoded too."""
    try:
        value = _load_nested(data)
        return decoder.decode(msgspec.json.encode(value))
    except msgspec.ValidationError as error:
        expected = "a list" if get_origin(decoder.type) is list else "an object"
        found = _KINDS.get(type(value), "a number")
        raise UndecodableError(f"is {found} instead of {expected}", "unexpected-shape") from error
    except lenient_json.FAILURES as error:
        code = _TOO_DEEP if isinstance(error, RecursionError) else "not-json"
        raise UndecodableError(_describe_error(error), code) from error


def _load_nested(data: bytes) -> Any:
    """Load a document. A text that contains a document is replaced by it."""
    return lenient_json.load_if_text(lenient_json.load(data))


def _describe_error(error: Exception) -> str:
    """Return why a text is not JSON, as the predicate of a sentence."""
    match error:
        case RecursionError():
            return "is nested too deeply"
        case json.JSONDecodeError() if not error.doc:
            return "is empty"
        case json.JSONDecodeError() if error.pos >= len(error.doc) or error.msg.startswith("Unterminated"):
            return "is not JSON: it ends too early"
        case json.JSONDecodeError():
            return f"is not JSON: it is invalid at character {error.pos + 1}"
    return "is not JSON"


def decode_each(data: Raw, type_: type[T]) -> tuple[list[T], list[str]]:
    """Return the items of a list, and an error for each undecodable item. Nothing if it is not a list."""
    if _first_byte(data) != b"[":
        return [], []
    try:
        return decode(data, list[type_]), []  # type: ignore[valid-type]
    except UndecodableError:
        pass
    try:
        items = decode(data, list[Raw])
    except UndecodableError:
        return [], []
    decoded: list[T] = []
    errors: list[str] = []
    for index, item in enumerate(items):
        try:
            decoded.append(decode(item, type_))
        except UndecodableError as error:
            errors.append(f"item {index} {error}")
    return decoded, errors


def decode_map(data: Raw, type_: type[T]) -> dict[str, T]:
    """Return the entries of an object that have the given type."""
    if _first_byte(data) != b"{":
        return {}
    try:
        return decode(data, dict[str, type_])  # type: ignore[valid-type]
    except UndecodableError:
        pass
    decoded: dict[str, T] = {}
    try:
        entries = decode(data, dict[str, Raw])
    except UndecodableError:
        return {}
    for key, item in entries.items():
        try:
            decoded[key] = decode(item, type_)
        except UndecodableError:
            continue
    return decoded


def _first_byte(data: Raw) -> bytes:
    return bytes(memoryview(data)[:1])


def unwrap(value: Any, *, levels: int = 2) -> Any:
    """Decode JSON text, up to ``levels`` times if it contains JSON text. Other values stay unchanged."""
    while levels and isinstance(value, str):
        if value[:1] not in _JSON_STARTS and value.lstrip()[:1] not in _JSON_STARTS:
            return value
        try:
            value = _load_json(value)
        except lenient_json.FAILURES:
            return value
        levels -= 1
    return value


def _load_json(text: str) -> Any:
    try:
        return _decode_any(text)
    except lenient_json.FAILURES:
        return lenient_json.load(text.encode("utf-8", "surrogatepass"))


def make_encodable(value: Any) -> Any:
    """Return the value, with integers beyond 64 bits, which msgspec cannot encode, as floats."""
    return value if _is_encodable(value) else lenient_json.load(json.dumps(value))


def _is_encodable(value: Any) -> bool:
    if isinstance(value, str):
        return True
    if isinstance(value, dict):
        return all(map(_is_encodable, value.values()))
    if isinstance(value, list):
        return all(map(_is_encodable, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**64


def as_text(value: Any) -> str:
    """Return the value if it is text, else an empty text."""
    return value if isinstance(value, str) else ""


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_int(value: Any) -> int | None:
    """Return a number as an integer; None for other values, booleans and numbers beyond 2**53."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return int(value) if -_MAX_INT < value < _MAX_INT else None


def latest_plausible() -> datetime:
    """Return the latest time that a record can have. The tolerance allows for clocks that are ahead."""
    return datetime.now(UTC) + _CLOCK_TOLERANCE


def parse_time(value: Any, latest: datetime) -> datetime | None:
    """Parse a time in any format. Return None if it is not a time or is in the future."""
    if value is None:
        return None
    at = _parse_iso(value) if isinstance(value, str) and value[_ISO_LENGTH:] == "Z" else None
    at = at or timestamps.from_value(value)
    return at if at is not None and timestamps.EARLIEST <= at < latest else None


def _parse_iso(text: str) -> datetime | None:
    """Parse the format that the editor writes, without trying the others."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


class UnitReport:
    """Counts records, and collects problems until the stream can emit them."""

    def __init__(self, path: str, record: str = "") -> None:
        self.path = path
        self.record = record  # location of the session's own record
        self.counts = RecordCounts()
        self.problems: list[Problem] = []  # since the last `take_problems`

    def add_problem(self, location: str, code: str, reason: str) -> None:
        """Add a problem. The caller counts the record."""
        self.problems.append(Problem(Origin(self.path, location), code, reason))

    def take_problems(self) -> list[Problem]:
        """Return the problems since the last call."""
        found, self.problems = self.problems, []
        return found
