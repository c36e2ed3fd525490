"""JSON lines as a living tool leaves them: streamed, and never stopped by one bad line.

A line normally holds one object. After a crash or a restore it may hold half of
one, two glued together, a run of NULs, or nothing that can be read; each line is
told with what could be had from it and, when something could not, why.
"""

import re
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec

from backscroll.model.problem import Fault
from backscroll.readers import lenient_json

__all__ = ["MAX_LINE_BYTES", "Line", "lines", "salvage"]

T = TypeVar("T")
IsRecord = Callable[[dict[str, Any]], bool]

MAX_LINE_BYTES = 64 * 1024 * 1024  # a longer line is skimmed, not decoded
_SKIMMED = 64 * 1024
_CHUNK = 1024 * 1024
_NEWLINE = ord("\n")
_SCALAR = re.compile(rb'\s*"(\w+)"\s*:\s*("(?:[^"\\]|\\.){0,4096}"|true|false|null|-?\d{1,18})\s*,')
_ANY_OBJECT = re.compile(r'\{"')


class Line(msgspec.Struct, Generic[T], gc=False):
    """One line: where it lies, the objects on it, and what is wrong with it."""

    number: int  # from 1
    offset: int
    size: int  # with its newline
    raw: bytes  # b"" for a line that was only skimmed
    values: tuple[T, ...] = ()
    fault: Fault | None = None  # why something on it could not be read
    is_complete: bool = True  # False while no newline ends it
    parts: tuple[bytes, ...] = ()  # where a line holds several objects: the text of each

    @property
    def is_final(self) -> bool:
        """Whether nothing can be added to it any more."""
        return self.is_complete or (bool(self.values) and self.fault is None)

    def value_bytes(self, number: int) -> bytes:
        """The bytes that one of its values was read from."""
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
    """Every line from ``offset`` on; ``line`` is the number of the last one read before it.

    What is written behind ``end`` while the file is being read is not read. ``whole`` is all of the file,
    where somebody has it in hand.

    ``starts`` finds where a record may begin in the middle of a broken line, and ``is_record`` tells a record
    found there from a part of the broken one. A last line without a newline is told like any other: its
    ``is_complete`` is False, and when it is not exactly one object it has a fault and no values.
    """
    decode = decoder.decode
    end = max(end, offset)
    with BytesIO(whole) if whole else path.open("rb", buffering=_CHUNK) as file:
        if offset:
            file.seek(offset - 1)
            if file.read(1) != b"\n":
                line -= 1  # the newline of the last line read was still to come
        readline = file.readline
        while raw := readline(MAX_LINE_BYTES if end - offset > MAX_LINE_BYTES else end - offset):
            line += 1
            size = len(raw)
            complete = raw[-1] == _NEWLINE
            if not complete and size == MAX_LINE_BYTES:
                skimmed = _skim(file, raw, decoder, end - offset)
                skimmed.number, skimmed.offset = line, offset
                offset += skimmed.size
                yield skimmed
                continue
            try:
                found = Line(line, offset, size, raw, (decode(raw),), None, complete)
            except lenient_json.FAILURES:
                found = salvage(raw, decoder, starts, is_record)
                found.number, found.offset, found.is_complete = line, offset, complete
                if not complete and (found.fault is not None or len(found.values) > 1):
                    found.values, found.parts = (), ()
                    found.fault = Fault("truncated-line", "cut off at the end of the file")
            yield found
            offset += size


def salvage(
    raw: bytes,
    decoder: msgspec.json.Decoder[T],
    starts: re.Pattern[str] = _ANY_OBJECT,
    is_record: IsRecord | None = None,
) -> Line[T]:
    """What can be had from a line that is not simply one object, and what is wrong with the rest."""
    text = lenient_json.clean_text(raw)
    values: list[T] = []
    parts: list[bytes] = []
    lost = 0
    at = 0
    fault: Fault | None = None
    try:
        for start, end, value in lenient_json.scan(text, starts):
            gap = start - at
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
        fault = Fault("damaged-record", f"cannot be decoded: {_said(error)}")
    lost += len(text[at:].strip())
    if fault is None and lost:
        fault = (
            Fault("damaged-record", f"{lost} characters beside the record cannot be decoded")
            if values
            else Fault("not-json", "is not JSON")
        )
    return Line(0, 0, len(raw), raw, tuple(values), fault, True, tuple(parts))


def _said(error: BaseException) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _skim(file: BinaryIO, head: bytes, decoder: msgspec.json.Decoder[T], most: int) -> Line[T]:
    """Pass over a line too large to decode, keeping the plain fields it begins with."""
    size = len(head)
    head = head[:_SKIMMED]
    complete = False
    while chunk := file.readline(min(_CHUNK, most - size)):
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
