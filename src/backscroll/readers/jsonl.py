"""Read JSON lines, including damaged ones.

A line normally has one object. After a crash or a restore it can have a part of an object, several objects,
NULs or no JSON at all. Each line is returned with the objects found on it and, if something could not be
decoded, the fault.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec

from backscroll.model.problem import Fault
from backscroll.model.text import pluralize
from backscroll.readers import lenient_json

T = TypeVar("T")
IsRecord = Callable[[dict[str, Any]], bool]

MAX_LINE_BYTES = 64 * 1024 * 1024  # of a longer line only the first fields are decoded
MAX_HEAD_BYTES = 64 * 1024
CHUNK_BYTES = 1024 * 1024
_NEWLINE = ord("\n")
_SCALAR = re.compile(rb'\s*"(\w+)"\s*:\s*("(?:[^"\\]|\\.){0,4096}"|true|false|null|-?\d{1,18})\s*,')
_ANY_OBJECT = re.compile(r'\{"')
_TRUNCATED = Fault("truncated-line", "cut off at the end of the file")
_TOO_DEEP = Fault(
    "nested-too-deeply",
    f"a value below {lenient_json.MAX_DEPTH} nested levels was left out; the rest was read",
)


class Line(msgspec.Struct, Generic[T], gc=False):
    """One line: its position, its objects and its fault."""

    number: int  # from 1
    offset: int
    size: int  # including the newline
    raw: bytes  # b"" if the line is too large
    values: tuple[T, ...] = ()
    fault: Fault | None = None  # why a part could not be decoded
    is_complete: bool = True  # False without a newline at the end
    parts: tuple[bytes, ...] = ()  # the JSON of each object, if the line has several

    @property
    def is_final(self) -> bool:
        """Return whether the line cannot grow any more."""
        return self.is_complete or (bool(self.values) and self.fault is None)

    def value_bytes(self, number: int) -> bytes:
        """Return the bytes of one of the objects."""
        return self.parts[number] if self.parts else self.raw

    @property
    def is_blank(self) -> bool:
        return not self.values and self.fault is None and not lenient_json.clean_text(self.raw)


def lines(
    path: Path,
    decoder: msgspec.json.Decoder[T],
    *,
    offset: int = 0,
    line: int = 0,
    end: int = sys.maxsize,
    starts: re.Pattern[str] = _ANY_OBJECT,
    is_record: IsRecord | None = None,
    whole: bytes = b"",
) -> Iterator[Line[T]]:
    """Yield every line from ``offset`` on. ``line`` is the number of the line before it.

    Data after ``end`` is ignored. ``whole`` is the content of the file, if the caller already has it.

    ``starts`` matches the possible start of a record within a damaged line. ``is_record`` distinguishes a
    record found there from a part of the damaged one. A last line without a newline has ``is_complete``
    False. If it is incomplete, the objects at its start are returned as a complete line of their own, and the
    rest has a fault and no values.
    """
    decode = decoder.decode
    end = max(end, offset)
    with BytesIO(whole) if whole else path.open("rb", buffering=CHUNK_BYTES) as file:
        if offset:
            file.seek(offset - 1)
            if file.read(1) != b"\n":
                line -= 1  # the previous read ended before the newline of its last line
        readline = file.readline
        while raw := readline(MAX_LINE_BYTES if end - offset > MAX_LINE_BYTES else end - offset):
            line += 1
            size = len(raw)
            complete = raw[-1] == _NEWLINE
            if not complete and size == MAX_LINE_BYTES:
                large = _read_first_fields(file, raw, decoder, end - offset)
                large.number, large.offset = line, offset
                offset += large.size
                yield large
                continue
            try:
                found = Line(line, offset, size, raw, (decode(raw),), None, complete)
            except lenient_json.FAILURES:
                found = salvage(raw, decoder, starts, is_record)
                found.number, found.offset, found.is_complete = line, offset, complete
                if not complete and (found.fault is not None or len(found.values) > 1):
                    for part in _split_last_line(raw, decoder, starts):
                        part.number, part.offset = line, offset
                        offset += part.size
                        yield part
                    continue
            yield found
            offset += size


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects in a file: one per line, or one in all. A damaged file has fewer, or none."""
    try:
        if path.suffix == ".json":
            document = lenient_json.load_object(path.read_bytes())
            yield from [document] if document else []
        else:
            for line in lines(path, msgspec.json.Decoder(dict[str, Any])):
                yield from line.values
    except (OSError, *lenient_json.FAILURES):
        return


def salvage(
    raw: bytes,
    decoder: msgspec.json.Decoder[T],
    starts: re.Pattern[str] = _ANY_OBJECT,
    is_record: IsRecord | None = None,
) -> Line[T]:
    """Decode the objects on an irregular line, with the fault of the rest."""
    whole_text = lenient_json.clean_text(raw)
    text = lenient_json.limit_depth(whole_text)
    values: list[T] = []
    parts: list[bytes] = []
    lost = 0
    at = 0
    fault: Fault | None = None
    try:
        for start, end, value in lenient_json.scan(text, starts):
            gap = len(text[at:start].strip())
            if isinstance(value, dict) and (not (lost or gap) or is_record is None or is_record(value)):
                lost += gap
                part = msgspec.json.encode(value)
                values.append(decoder.decode(part))
                parts.append(part)
            elif isinstance(value, dict):
                lost += end - at
            else:
                lost += gap
            at = end
    except lenient_json.FAILURES as error:
        fault = Fault("damaged-record", f"cannot be decoded: {_describe(error)}")
    lost += len(text[at:].strip())
    if fault is None and values and not lost and text != whole_text:
        fault = _TOO_DEEP
    if fault is None and lost:
        fault = (
            Fault("damaged-record", f"{pluralize(lost, 'character')} around the record cannot be decoded")
            if values
            else Fault("not-json", "is not JSON")
        )
    return Line(0, 0, len(raw), raw, tuple(values), fault, True, tuple(parts))


def _split_last_line(
    raw: bytes, decoder: msgspec.json.Decoder[T], starts: re.Pattern[str]
) -> Iterator[Line[T]]:
    """Yield the objects at the start of a last line without newline as a line, then the rest of the line.

    After the first gap nothing is decoded: it may be inside an object that is still being written.
    """
    whole_text = lenient_json.clean_text(raw)
    text = lenient_json.limit_depth(whole_text)
    values: list[T] = []
    parts: list[bytes] = []
    at = 0
    with suppress(*lenient_json.FAILURES):
        for start, end, value in lenient_json.scan(text, starts):
            if text[at:start].strip() or not isinstance(value, dict):
                break
            part = msgspec.json.encode(value)
            values.append(decoder.decode(part))
            parts.append(part)
            at = end
    rest = text[at:].strip()
    size = raw.rfind(rest.encode()) if rest else len(raw)
    if values and size > 0:
        fault = _TOO_DEEP if text != whole_text else None
        yield Line(0, 0, size, raw[:size], tuple(values), fault, True, tuple(parts))
        raw = raw[size:]
    if raw:
        yield Line(0, 0, len(raw), raw, (), _TRUNCATED, False)


def _describe(error: BaseException) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _read_first_fields(
    file: BinaryIO, head: bytes, decoder: msgspec.json.Decoder[T], max_bytes: int
) -> Line[T]:
    """Skip the rest of a line that is too large, and decode its first scalar fields."""
    size = len(head)
    head = head[:MAX_HEAD_BYTES]
    complete = False
    while chunk := file.readline(min(CHUNK_BYTES, max_bytes - size)):
        size += len(chunk)
        if chunk.endswith(b"\n"):
            complete = True
            break
    reason = f"{size} bytes in one line are too large to decode; only its first fields were read"
    fault = Fault("line-too-large", reason)
    fields: dict[str, Any] = {}
    at = head.find(b"{") + 1
    values: tuple[T, ...] = ()
    try:
        while at and (found := _SCALAR.match(head, at)):
            fields[found[1].decode()] = lenient_json.load(found[2])
            at = found.end()
        values = (decoder.decode(msgspec.json.encode(fields)),) if fields else ()
    except lenient_json.FAILURES:
        pass
    return Line(0, 0, size, b"", values, fault, complete)
