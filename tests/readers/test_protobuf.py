"""Protobuf records: intact, truncated and damaged."""

from hypothesis import given
from hypothesis import strategies as st

from backscroll.readers.protobuf import MAX_DEPTH, Record


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: int | bytes | str | tuple[int, int]) -> bytes:
    """Encode a varint, a length-delimited value, or a fixed-width number given with its width."""
    match value:
        case int():
            return varint(number << 3) + varint(value)
        case str():
            return field(number, value.encode())
        case bytes():
            return varint(number << 3 | 2) + varint(len(value)) + value
        case (fixed, width):
            return varint(number << 3 | (1 if width == 8 else 5)) + fixed.to_bytes(width, "little")


NUMBERS = st.integers(1, 2**29 - 1)
VALUES = (
    st.integers(0, 2**64 - 1)
    | st.binary(max_size=200)
    | st.tuples(st.integers(0, 2**64 - 1), st.just(8))
    | st.tuples(st.integers(0, 2**32 - 1), st.just(4))
)


@given(st.lists(st.tuples(NUMBERS, VALUES), max_size=20))
def test_fields_are_read_in_the_order_written(
    written: list[tuple[int, int | bytes | tuple[int, int]]],
) -> None:
    record = Record(b"".join(field(number, value) for number, value in written))
    assert record.fault is None
    expected = [(number, value[0] if isinstance(value, tuple) else value) for number, value in written]
    assert [(number, value) for number, _, value in record.fields] == expected


@given(st.binary(max_size=500))
def test_any_bytes_are_a_record_or_a_fault(data: bytes) -> None:
    record = Record(data)
    for number in record.numbers:
        record.texts(number)
        record.number(number)
        record.records(number)


@given(st.data())
def test_a_truncated_record_keeps_its_complete_fields(data: st.DataObject) -> None:
    parts = [field(1, b"x" * 32), field(10, 300), field(26, 1_790_000_000_000), field(27, "Europe/Paris")]
    whole = b"".join(parts)
    cut = data.draw(st.integers(0, len(whole)))
    record = Record(whole[:cut])
    starts = [sum(map(len, parts[:count])) for count in range(len(parts) + 1)]
    assert len(record.fields) == sum(start <= cut for start in starts) - 1
    assert (record.fault is None) is (cut in starts)


def test_groups_and_field_zero_end_a_record_with_a_fault() -> None:
    for broken, reason in (
        (b"\x0b", "wire type 3"),
        (b"\x0c", "wire type 4"),
        (b"\x00", "field 0"),
        (b"\x0f", "wire type 7"),
    ):
        record = Record(field(1, "kept") + broken + field(1, "unreachable"))
        assert record.texts(1) == ["kept"]
        assert record.fault is not None
        assert reason in record.fault


def test_the_last_value_of_a_repeated_field_wins() -> None:
    record = Record(field(1, "old") + field(1, "new") + field(2, 1) + field(2, 2))
    assert (record.text(1), record.number(2)) == ("new", 2)
    assert (record.text(3), record.number(3), record.record(3), record.all(3)) == (None, None, None, [])


def test_a_field_of_another_type_is_not_returned() -> None:
    record = Record(field(1, 5) + field(2, "five"))
    assert (record.bytes(1), record.number(2)) == (None, None)


def test_text_that_is_not_utf8_is_still_text() -> None:
    assert Record(field(1, b"caf\xe9")).text(1) == "caf\ufffd"


def test_nested_records_are_limited_in_depth() -> None:
    data = b""
    for _ in range(MAX_DEPTH + 5):
        data = field(1, data)
    record: Record | None = Record(data)
    depth = 0
    while record is not None and record.fault is None:
        record, depth = record.record(1), depth + 1
    assert record is not None
    assert depth == MAX_DEPTH + 1


def test_a_number_longer_than_ten_bytes_is_a_fault() -> None:
    assert Record(b"\x08" + b"\x80" * 12).fault is not None
