"""JSON lines: intact, truncated and damaged."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.readers import jsonl

DECODER = msgspec.json.Decoder(dict[str, Any])
RECORD_START = re.compile(r'\{"type"')


def read(path: Path, **options: Any) -> list[jsonl.Line[dict[str, Any]]]:
    return list(jsonl.lines(path, DECODER, **options))


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_a_line_has_its_number_offset_and_size(scratch: Path) -> None:
    lines = read(write(scratch, b'{"a":1}\n{"b":2}\n'))
    assert [(line.number, line.offset, line.size, line.values) for line in lines] == [
        (1, 0, 8, ({"a": 1},)),
        (2, 8, 8, ({"b": 2},)),
    ]


def test_a_complete_last_line_without_newline_is_read(scratch: Path) -> None:
    (line,) = read(write(scratch, b'{"a":1}'))
    assert (line.values, line.fault, line.is_complete) == (({"a": 1},), None, False)


def test_a_truncated_last_line_is_a_fault(scratch: Path) -> None:
    whole, cut = read(write(scratch, b'{"a":1}\n{"b":'))
    assert whole.values == ({"a": 1},)
    assert (cut.values, cut.fault.code) == ((), "truncated-line")


def test_two_records_on_one_line_are_both_read_without_a_fault(scratch: Path) -> None:
    (line,) = read(write(scratch, b'{"a":1}{"b":2}\n'))
    assert (line.values, line.fault) == (({"a": 1}, {"b": 2}), None)


def test_a_record_after_a_truncated_one_is_read_and_the_truncated_one_is_a_fault(scratch: Path) -> None:
    (line,) = read(write(scratch, b'{"type":"pr-link","prNu{"type":"user","x":1}\n'), starts=RECORD_START)
    assert line.values == ({"type": "user", "x": 1},)
    assert line.fault is not None
    assert line.fault.code == "damaged-record"
    assert "cannot be decoded" in line.fault.reason


def test_nul_bytes_around_a_record_are_ignored(scratch: Path) -> None:
    before, alone, after = read(write(scratch, b'\0\0{"a":1}\n\0\0\0\n{"b":2}\0\0\n'))
    assert (before.values, before.fault) == (({"a": 1},), None)
    assert alone.is_blank
    assert (after.values, after.fault) == (({"b": 2},), None)


def test_a_lone_surrogate_becomes_the_replacement_character(scratch: Path) -> None:
    (line,) = read(write(scratch, rb'{"a":"x\ud83dy"}'))
    assert line.values == ({"a": "x\ufffdy"},)


def test_invalid_utf8_becomes_the_replacement_character(scratch: Path) -> None:
    (line,) = read(write(scratch, b'{"a":"\xe6\x97"}\n'))
    assert line.values == ({"a": "\ufffd"},)


@pytest.mark.parametrize("raw", [b"null\n", b"[1]\n", b"3\n", b'"x"\n'])
def test_a_line_that_is_not_an_object_has_no_value_and_no_fault(scratch: Path, raw: bytes) -> None:
    (line,) = read(write(scratch, raw))
    assert (line.values, line.fault, line.is_blank) == ((), None, False)


def test_byte_order_mark_and_windows_newlines_are_ignored(scratch: Path) -> None:
    lines = read(write(scratch, b'\xef\xbb\xbf{"a":1}\r\n\r\n{"b":2}\r\n'))
    assert [line.values for line in lines] == [({"a": 1},), (), ({"b": 2},)]
    assert [line.fault for line in lines] == [None, None, None]
    assert lines[1].is_blank


def test_a_number_that_is_too_large_does_not_lose_the_record(scratch: Path) -> None:
    (line,) = read(write(scratch, b'{"a":1e999,"b":' + b"9" * 400 + b',"c":NaN,"d":1}\n'))
    assert line.values[0]["d"] == 1


def test_deep_nesting_is_a_fault_of_its_line_only(scratch: Path) -> None:
    deep, after = read(write(scratch, b'{"a":' + b"[" * 100_000 + b'\n{"b":2}\n'))
    assert deep.fault is not None
    assert after.values == ({"b": 2},)


def test_a_value_that_is_nested_too_deeply_is_left_out(scratch: Path) -> None:
    deep = b'{"type":"user","a":' + b'{"x":[' * 3000 + b'"]"' + b"]}" * 3000 + b',"b":"kept [{"}'
    for end in (b"\n", b""):  # on a line of its own, or with the next record
        lines = read(write(scratch, deep + b'\n{"c":3}\n' + deep + end + b'{"d":4}\n'))
        values = [value for line in lines for value in line.values]
        assert [value.get("b") for value in values] == ["kept [{", None, "kept [{", None]
        assert values[-1] == {"d": 4}
        faults = [line.fault.code for line in lines if line.fault]
        assert faults == ["nested-too-deeply"] * 2


def test_a_value_that_is_nested_too_deeply_is_left_out_of_a_last_line_without_newline(scratch: Path) -> None:
    (line,) = read(write(scratch, b'{"a":1,"b":' + b"[" * 5000 + b"]" * 5000 + b"}"))
    assert line.values[0]["a"] == 1
    assert line.fault is not None
    assert (line.fault.code, line.is_final) == ("nested-too-deeply", True)


@pytest.mark.parametrize("rest", [b"", b'{"c":', b'{"c":{"type":"x"}', b"\0\0"])
def test_records_at_the_start_of_a_last_line_without_newline_are_read(scratch: Path, rest: bytes) -> None:
    start = b'{"type":"user","a":1}{"type":"user","b":2}'
    first, *others = read(write(scratch, start + rest), starts=RECORD_START)
    assert first.values == ({"type": "user", "a": 1}, {"type": "user", "b": 2})
    assert (first.fault, first.is_final) == (None, True)
    assert [(line.values, line.fault and line.fault.code, line.is_final) for line in others] == (
        [((), "truncated-line", False)] if rest.startswith(b"{") else []
    )
    assert sum(line.size for line in (first, *others)) == len(start + rest)


def test_the_rest_of_a_last_line_is_read_when_it_is_complete(scratch: Path) -> None:
    data = b'{"a":1}{"b":2}{"c":'
    first, _ = read(write(scratch, data))
    write(scratch, data + b'3}\n{"d":4}\n')
    rest = read(scratch, offset=first.offset + first.size, line=first.number)
    assert [(line.number, line.values) for line in rest] == [(1, ({"c": 3},)), (2, ({"d": 4},))]


def test_part_of_a_truncated_record_is_not_a_record(scratch: Path) -> None:
    (line,) = read(write(scratch, b'{"a":{"type":"user","b":1},'), starts=RECORD_START)
    assert line.values == ()
    assert line.fault is not None
    assert line.fault.code == "truncated-line"


def test_many_quotes_in_a_truncated_string_take_linear_time(scratch: Path) -> None:
    data = b"[" * 300 + b'{"a":"' + rb"\"" * 100_000
    (line,) = read(write(scratch, data))
    assert line.fault is not None


def test_a_line_over_the_size_limit_keeps_its_first_fields(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 200)
    large = b'{"type":"user","n":7,"message":{"content":"' + b"x" * 500 + b'"}}\n'
    oversized, after = read(write(scratch, large + b'{"b":2}\n'))
    assert oversized.values == ({"type": "user", "n": 7},)
    assert (oversized.size, oversized.number) == (len(large), 1)
    assert oversized.fault is not None
    assert (after.values, after.offset, after.number) == (({"b": 2},), len(large), 2)


def test_reading_continues_at_an_offset(scratch: Path) -> None:
    write(scratch, b'{"a":1}\n{"b":2}\n{"c":3}\n')
    assert [line.values for line in read(scratch, offset=8, line=1)] == [({"b": 2},), ({"c": 3},)]
    assert [line.number for line in read(scratch, offset=8, line=1)] == [2, 3]


def test_a_newline_added_later_does_not_change_the_line_numbers(scratch: Path) -> None:
    write(scratch, b'{"a":1}')
    (first,) = read(scratch)
    write(scratch, b'{"a":1}\n{"b":2}\n')
    rest = [line for line in read(scratch, offset=first.size, line=first.number) if not line.is_blank]
    assert [(line.number, line.values) for line in rest] == [(2, ({"b": 2},))]


records = st.lists(
    st.dictionaries(st.text(max_size=8), st.text(max_size=20) | st.integers() | st.none()), max_size=6
)


@given(records, st.data())
def test_a_truncated_file_keeps_every_complete_line(
    scratch: Path, objects: list[dict[str, Any]], data: st.DataObject
) -> None:
    lines = [json.dumps(item, ensure_ascii=False).encode("utf-8", "surrogatepass") for item in objects]
    whole = b"".join(line + b"\n" for line in lines)
    cut = data.draw(st.integers(0, len(whole)))
    found = read(write(scratch, whole[:cut]))
    assert sum(bool(line.values) for line in found) >= whole[:cut].count(b"\n")
    assert sum(line.fault is not None for line in found) <= 1


@given(records, st.binary(max_size=20), st.data())
def test_lines_in_memory_are_read_like_those_of_a_file(
    scratch: Path, objects: list[dict[str, Any]], damaged: bytes, data: st.DataObject
) -> None:
    whole = b"\n".join([*map(msgspec.json.encode, objects), damaged, b"{}"])
    end = data.draw(st.integers(0, len(whole)))
    from_memory = read(scratch.with_name("nowhere"), end=end, whole=whole)
    assert from_memory == read(write(scratch, whole), end=end)


@given(st.binary(max_size=400))
def test_any_bytes_can_be_read(scratch: Path, data: bytes) -> None:
    found = read(write(scratch, data))
    assert sum(line.size for line in found) == len(data)
    assert [line.number for line in found] == list(range(1, len(found) + 1))
