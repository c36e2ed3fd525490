"""Descriptions of calls, diffs of edits, and sanitized text."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.model.message import Edit, Hunk, ToolCall
from backscroll.model.text import escape_json, one_line, sanitize
from backscroll.render.tool_calls import argument_lines, call_outcome, describe_call, diff_lines


@pytest.mark.parametrize(
    ("params", "line"),
    [
        ({"description": "List files", "command": "ls  -la\npwd"}, "ls -la pwd"),
        ({"file_path": "/a/b.py", "limit": 3}, "/a/b.py"),
        ({"someQuery": "tide", "x": "y"}, "tide"),
        ({"count": 3}, ""),
        ({}, ""),
        ({"command": "x" * 500}, "x" * 99 + "…"),
    ],
)
def test_a_call_is_described_by_its_most_informative_argument(params: dict[str, Any], line: str) -> None:
    assert describe_call(ToolCall(id=None, name="Any", params=params)) == line


def test_the_outcome_mentions_unusual_states() -> None:
    edit = Edit("a", (Hunk(("x",), ("y", "z")),))
    assert call_outcome(ToolCall(id=None, name="A", result="a\nb\n", status="completed")) == "2 lines"
    assert call_outcome(ToolCall(id=None, name="A", result="a", status="failed")) == "failed, 1 line"
    assert call_outcome(
        ToolCall(id=None, name="A", status="completed", decision="rejected", edits=(edit,))
    ) == ("rejected, +2 −1")


def test_arguments_of_several_lines_are_indented() -> None:
    tool = ToolCall(id=None, name="A", params={"one": "a\nb", "two": {"x": [1]}})
    assert list(argument_lines(tool)) == ["one:", "  a", "  b", 'two: {"x":[1]}']


def test_a_diff_has_file_names_and_line_numbers() -> None:
    hunks = (Hunk(("a",), ("b",), 4, 4), Hunk((), ("c",)), Hunk())
    assert list(diff_lines(Edit("x.py", hunks, "create"))) == [
        "--- /dev/null", "+++ x.py", "@@ -4,1 +4,1 @@", "-a", "+b", "@@ @@", "+c",
    ]  # fmt: skip
    assert list(diff_lines(Edit("x.py", (Hunk(),)))) == []


@pytest.mark.parametrize(
    ("hunk", "header"),
    [
        (Hunk((), ("a",), 12, 12), "@@ -11,0 +12,1 @@"),
        (Hunk(("a", "b"), (), 12, 15), "@@ -12,2 +14,0 @@"),
        (Hunk((), ("a",), new_start=1), "@@ -0,0 +1,1 @@"),
        (Hunk(("a",), ("b",), 12, 13), "@@ -12,1 +13,1 @@"),
    ],
)
def test_a_range_without_lines_has_the_number_of_the_line_before_it(hunk: Hunk, header: str) -> None:
    assert list(diff_lines(Edit("x.py", (hunk,))))[2] == header


@given(st.text())
def test_sanitizing_twice_changes_nothing_and_one_line_fits(text: str) -> None:
    assert sanitize(sanitize(text)) == sanitize(text)
    assert "\n" not in one_line(text, 20)
    assert len(one_line(text, 20)) <= 20


def test_escape_sequences_are_removed_completely() -> None:
    assert (
        sanitize("\x1b]8;;http://x\x07link\x1b]8;;\x1b\\ \x1b[1;31mred\x1b[0m\x1bPq#\x1b\\\u202e!")
        == "link red!"
    )
    assert sanitize("a\r\nb\tc 日本 👩\u200d🚀") == "a\nb\tc 日本 👩\u200d🚀"


def test_escaped_json_is_equivalent() -> None:
    import json

    text = "a\x7f\x9b\u202eb\u2028\ufeff\U000e0041é"
    escaped = escape_json(json.dumps(text, ensure_ascii=False).encode())
    assert json.loads(escaped) == text
    assert escaped.decode() == '"a\\u007f\\u009b\\u202eb\\u2028\\ufeff\\udb40\\udc41é"'


@given(st.lists(st.text("ab\n\x7f\x9b\u200b\ufeffé日\U000e0041", max_size=40), max_size=60))
def test_a_long_document_is_escaped_like_its_parts(texts: list[str]) -> None:
    encode = msgspec.json.encode
    parts = [text * 9 for text in texts]
    escaped = escape_json(msgspec.json.format(encode(parts)))
    assert escaped == msgspec.json.format(
        b"[" + b",".join(escape_json(encode(part)) for part in parts) + b"]"
    )
