"""JSON lines as a living tool leaves them: streamed, and never stopped by one bad line.

A line normally holds one object. After a crash or a restore it may hold half of
one, two glued together, a run of NULs, or nothing that can be read; each line is
told with what could be had from it and, when something could not, why.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import msgspec

from backscroll.readers import lenient

__all__ = ["LARGEST_LINE", "Line", "lines", "salvage"]

T = TypeVar("T")

LARGEST_LINE = 64 * 1024 * 1024  # a longer line is skimmed, not decoded
_SKIMMED = 64 * 1024
_CHUNK = 1024 * 1024
_SCALAR = re.compile(rb'\s*"(\w+)"\s*:\s*("(?:[^"\\]|\\.){0,4096}"|true|false|null|-?\d{1,18})\s*,')
_ANY_OBJECT = re.compile(r'\{"')


class Line(msgspec.Struct, Generic[T]):
    """One line: where it lies, the objects on it, and what is wrong with it."""

    number: int  # from 1
    offset: int
    size: int  # with its newline
    raw: bytes  # b"" for a line that was only skimmed
    values: tuple[T, ...] = ()
    fault: str | None = None  # why something on it could not be read
    is_complete: bool = True  # False while no newline ends it

    @property
    def is_blank(self) -> bool:
        return not self.values and self.fault is None and not lenient.clean_text(self.raw)


def lines(
    path: Path,
    decoder: msgspec.json.Decoder[T],
    *,
    offset: int = 0,
    line: int = 0,
    starts: re.Pattern[str] = _ANY_OBJECT,
) -> Iterator[Line[T]]:
    """Every line from ``offset`` on; ``line`` is the number of the last one read before it.

    ``starts`` finds where a record may begin in the middle of a broken line. A last line without a newline is
    told like any other: its ``is_complete`` is False, and when it holds no whole object it has a fault.
    """
    decode = decoder.decode
    with path.open("rb", buffering=_CHUNK) as file:
        if offset:
            file.seek(offset - 1)
            if file.read(1) != b"\n":
                line -= 1  # the newline of the last line read was still to come
        readline = file.readline
        while raw := readline(LARGEST_LINE):
            line += 1
            size = len(raw)
            complete = raw.endswith(b"\n")
            if size == LARGEST_LINE and not complete:
                skimmed = _skim(file, raw, decoder)
                skimmed.number, skimmed.offset = line, offset
                offset += skimmed.size
                yield skimmed
                continue
            try:
                values: tuple[T, ...] = (decode(raw),)
                fault = None
            except lenient.FAILURES:
                values, fault = salvage(raw, decoder, starts, complete=complete)
            yield Line(line, offset, size, raw, values, fault, complete)
            offset += size


def salvage(
    raw: bytes,
    decoder: msgspec.json.Decoder[T],
    starts: re.Pattern[str] = _ANY_OBJECT,
    *,
    complete: bool = True,
) -> tuple[tuple[T, ...], str | None]:
    """What can be had from a line that is not simply one object, and what is wrong with the rest."""
    text = lenient.clean_text(raw)
    if not text:
        return (), None
    values: list[T] = []
    lost = 0
    at = 0
    try:
        for start, end, value in lenient.scan(text, starts):
            lost += start - at
            at = end
            if isinstance(value, dict):
                values.append(decoder.decode(msgspec.json.encode(value)))
    except lenient.FAILURES as error:
        return tuple(values), f"cannot be decoded: {_said(error)}"
    lost += len(text[at:].strip())
    if not lost:
        return tuple(values), None
    if not values:
        return (), "cut off at the end of the file" if not complete else "is not JSON"
    return tuple(values), f"{lost} characters beside the record cannot be decoded"


def _said(error: BaseException) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _skim(file: BinaryIO, head: bytes, decoder: msgspec.json.Decoder[T]) -> Line[T]:
    """Pass over a line too large to decode, keeping the plain fields it begins with."""
    size = len(head)
    head = head[:_SKIMMED]
    complete = False
    while chunk := file.readline(_CHUNK):
        size += len(chunk)
        if chunk.endswith(b"\n"):
            complete = True
            break
    fault = f"{size} bytes in one line are too large to decode; only its first fields were read"
    fields: dict[str, Any] = {}
    at = head.find(b"{") + 1
    while at and (found := _SCALAR.match(head, at)):
        fields[found[1].decode()] = lenient.load(found[2])
        at = found.end()
    try:
        values: tuple[T, ...] = (decoder.decode(msgspec.json.encode(fields)),) if fields else ()
    except lenient.FAILURES:
        values = ()
    return Line(0, 0, size, b"", values, fault, complete)
