"""A tiny protobuf encoder: enough to write the message graphs that Cursor keeps.

A field is a number and a value. Whole numbers become varints, text and bytes
become length-delimited fields, and a nested message is the bytes of `message`.
"""

__all__ = ["Field", "entry", "fixed32", "fixed64", "group", "message", "varint"]

Field = tuple[int, int | str | bytes]


def varint(number: int) -> bytes:
    """Seven bits a byte, lowest first; negative numbers in two's complement, as ten bytes."""
    rest = number & 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def message(*fields: Field) -> bytes:
    """Encode the fields in the order given, so that grouped and interleaved writers can both be imitated."""
    return b"".join(_field(number, value) for number, value in fields)


def entry(key: str, value: str | bytes) -> bytes:
    """One entry of a map field."""
    return message((1, key), (2, value))


def fixed32(field: int, number: int) -> bytes:
    """A four-byte field, which no known message has: readers must step over it."""
    return varint(field << 3 | 5) + number.to_bytes(4, "little")


def fixed64(field: int, number: int) -> bytes:
    """An eight-byte field, to be stepped over like the four-byte one."""
    return varint(field << 3 | 1) + number.to_bytes(8, "little")


def group(field: int, content: bytes = b"") -> bytes:
    """A field of the abandoned group type, behind which nothing can be trusted."""
    return varint(field << 3 | 3) + content + varint(field << 3 | 4)


def _field(number: int, value: int | str | bytes) -> bytes:
    match value:
        case int():
            return varint(number << 3) + varint(value)
        case str():
            value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value
