"""Minimal protobuf encoder for the message graphs of Cursor.

A field is a number and a value. Integers become varints; text and bytes become
length-delimited fields. A nested message is the result of another `encode_message` call.
"""

Field = tuple[int, int | str | bytes]


def varint(value: int) -> bytes:
    """Encode an integer with seven bits per byte, lowest bits first. A negative value takes ten bytes."""
    remaining = value & 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while remaining > 0x7F:
        out.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    out.append(remaining)
    return bytes(out)


def encode_message(*fields: Field) -> bytes:
    """Encode the fields in the given order. Some writers group repeated fields, others interleave them."""
    return b"".join(_encode_field(number, value) for number, value in fields)


def encode_map_entry(key: str, value: str | bytes) -> bytes:
    """Encode one entry of a map field."""
    return encode_message((1, key), (2, value))


def fixed32(field: int, value: int) -> bytes:
    """Encode a four-byte field. No known message has one, so readers must skip it."""
    return varint(field << 3 | 5) + value.to_bytes(4, "little")


def fixed64(field: int, value: int) -> bytes:
    """Encode an eight-byte field. No known message has one, so readers must skip it."""
    return varint(field << 3 | 1) + value.to_bytes(8, "little")


def encode_group(field: int, content: bytes = b"") -> bytes:
    """Encode a field of the deprecated group type. Readers cannot parse the fields after it."""
    return varint(field << 3 | 3) + content + varint(field << 3 | 4)


def _encode_field(number: int, value: int | str | bytes) -> bytes:
    match value:
        case int():
            return varint(number << 3) + varint(value)
        case str():
            value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value
