"""Parse the protobuf wire format without a schema.

A record is a sequence of numbered fields; the caller knows their meaning. Nothing raises: invalid data ends
the record, and `fault` has the reason.
"""

from typing import NamedTuple

MAX_DEPTH = 32  # of nested records
MAX_FIELDS = 1_000_000
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}


class Field(NamedTuple):
    number: int
    wire_type: int
    value: int | bytes  # bytes for wire type 2, an unsigned integer for the others


class Record:
    """The fields of one message, in order, up to the first invalid one."""

    def __init__(self, data: bytes, *, depth: int = 0) -> None:
        self.depth = depth
        self.fields: list[Field] = []
        self.fault: str | None = None
        self.group_start: int | None = None  # position of a group, which ends the record
        self._by_number: dict[int, list[int | bytes]] = {}
        if depth > MAX_DEPTH:
            self.fault = f"more than {MAX_DEPTH} nested records"
            return
        try:
            self._parse(data)
        except _InvalidRecordError as error:
            self.fault = str(error)

    def _parse(self, data: bytes) -> None:
        at, end = 0, len(data)
        while at < end:
            if len(self.fields) >= MAX_FIELDS:
                raise _InvalidRecordError(f"more than {MAX_FIELDS} fields")
            start = at
            tag = data[at]
            if tag < 0x80:
                at += 1
            else:
                tag, at = _varint(data, at)
            number, wire_type = tag >> 3, tag & 7
            value: int | bytes
            if not number:
                raise _InvalidRecordError(f"field 0 at byte {start}")
            if wire_type == _VARINT:
                value, at = _varint(data, at)
            elif wire_type == _BYTES:
                if at < end and data[at] < 0x80:
                    size, at = data[at], at + 1
                else:
                    size, at = _varint(data, at)
                if size > end - at:
                    raise _InvalidRecordError(f"cut off in field {number} at byte {start}")
                value, at = data[at : at + size], at + size
            elif width := _WIDTHS.get(wire_type):
                if width > end - at:
                    raise _InvalidRecordError(f"cut off in field {number} at byte {start}")
                value, at = int.from_bytes(data[at : at + width], "little"), at + width
            else:
                self.group_start = start
                raise _InvalidRecordError(f"wire type {wire_type} in field {number} at byte {start}")
            self.fields.append(Field(number, wire_type, value))
            self._by_number.setdefault(number, []).append(value)

    @property
    def numbers(self) -> set[int]:
        return set(self._by_number)

    def all(self, number: int) -> list[bytes]:
        """Return the values of a repeated bytes field."""
        return [value for value in self._by_number.get(number, ()) if isinstance(value, bytes)]

    def bytes(self, number: int) -> bytes | None:
        """Return the bytes of a field; the last value if it is repeated, as the format requires."""
        return next(reversed(self.all(number)), None)

    def number(self, number: int) -> int | None:
        """Return the integer of a field; None if it is absent."""
        values = self._by_number.get(number, ())
        return next((value for value in reversed(values) if isinstance(value, int)), None)

    def texts(self, number: int) -> list[str]:
        """Return the values of a repeated text field. Invalid UTF-8 is replaced."""
        return [value.decode("utf-8", "replace") for value in self.all(number)]

    def text(self, number: int) -> str | None:
        value = self.bytes(number)
        return None if value is None else value.decode("utf-8", "replace")

    def records(self, number: int) -> list["Record"]:
        """Return the values of a repeated field as records."""
        return [Record(value, depth=self.depth + 1) for value in self.all(number)]

    def record(self, number: int) -> "Record | None":
        value = self.bytes(number)
        return None if value is None else Record(value, depth=self.depth + 1)


class _InvalidRecordError(ValueError):
    pass


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for position in range(at, min(at + 10, len(data))):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position + 1
        shift += 7
    raise _InvalidRecordError(f"cut off in a number at byte {at}")
