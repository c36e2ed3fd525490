"""Outline of a JSON document: names and types of its fields, without user data."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.readers.json_outline import Outline, safe_name

HOSTILE = [
    "/home/alice/tax.ods",
    "src/payroll.py",
    "Makefile",
    "README",
    "alice@example.org",
    "https://intranet.example/x",
    "what did the whale say",
    "0f3c9a12-0000-4000-8000-000000000001",
    "a1b2c3d4-0000-4000-8000-000000000001",
    "toolu_01AbCdEfGhIjKlMnOp",
    "deadbeef",
    "2026-09-21",
    "d20260921",
    "left-pad",
    "x" * 41,
    "",
    "été",
]


def outline_text(*documents: Any) -> str:
    outline = Outline()
    for document in documents:
        outline.add(document)
    assert outline.documents == len(documents)
    return "\n".join(outline.lines())


def test_an_outline_contains_names_and_types_but_no_values() -> None:
    assert outline_text(
        {"role": "user", "parts": [{"text": "whale"}, {"text": None}]}, {"role": 7}
    ) == "\n".join(
        [
            "(document): object 2",
            "parts: list 1",
            "parts[]: object 2",
            "parts[].text: null 1, str 1",
            "role: int 1, str 1",
        ]
    )


@pytest.mark.parametrize("key", HOSTILE)
def test_a_key_that_may_be_user_data_is_replaced(key: str) -> None:
    text = outline_text({"role": "user", "holder": {key: {"size": 1}}})
    assert key == "" or key not in text
    assert "holder.*.size: int 1" in text


def test_an_object_with_a_path_as_key_is_a_map() -> None:
    text = outline_text({"kept": {"alice": {"version": 1}, "src/a.py": {"version": 2}}})
    assert "alice" not in text
    assert "kept.*.version: int 2" in text


def test_a_map_in_one_document_is_a_map_in_all_documents() -> None:
    text = outline_text({"kept": {"alice": 1}}, {"kept": {"src/a.py": 1}}, {"kept": {"bob": 1}})
    assert "kept.*: int 3" in text
    assert not {"alice", "bob"} & set(text.replace(".", " ").replace(":", " ").split())


def test_objects_without_a_key_in_common_are_maps() -> None:
    text = outline_text(*({"by": {name: {"tokens": 1}}} for name in ("alice", "bob", "carol", "dave", "eve")))
    assert "by.*.tokens: int 5" in text
    assert "alice" not in text


@pytest.mark.parametrize("name", ["input", "args", "params", "result", "structuredContent"])
def test_keys_in_tool_arguments_and_results_are_replaced(name: str) -> None:
    text = outline_text({"call": {name: {"customer": [{"salary": {"amount": 1}}]}}})
    assert f"call.{name}.*[].*.*: int 1" in text
    assert not [word for word in ("customer", "salary", "amount") if word in text]


def test_keys_of_file_backups_are_always_replaced() -> None:
    text = outline_text({"trackedFileBackups": {"notes": {"version": 1}, "todo": {"version": 2}}})
    assert "trackedFileBackups.*.version: int 2" in text
    assert "notes" not in text


def test_an_object_with_many_keys_is_a_map() -> None:
    assert (
        outline_text({f"key{chr(97 + n % 26)}{'x' * (n // 26)}": n for n in range(80)})
        == "(document): object 1\n*: int 80"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("tool-call", "tool-call"),
        ("turn_ended", "turn_ended"),
        (2, "2"),
        (10**9, "(int)"),
        ("two words", "(str)"),
        ("/home/alice", "(str)"),
        ({"a": 1}, "(object)"),
        (None, "(null)"),
        (True, "(bool)"),
    ],
)
def test_safe_name_returns_a_type_name_or_the_kind_of_value(value: Any, shown: str) -> None:
    assert safe_name(value) == shown


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    )
)
def test_any_document_has_an_outline(document: Any) -> None:
    assert outline_text(document).startswith("(document): ")
