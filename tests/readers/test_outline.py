"""Outlines: what a document looks like, and nothing that a user could have put into it."""

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


def keys(*documents: Any) -> str:
    outline = Outline()
    for document in documents:
        outline.add(document)
    assert outline.documents == len(documents)
    return "\n".join(outline.lines())


def test_names_and_types_are_told_and_values_are_not() -> None:
    assert keys({"role": "user", "parts": [{"text": "whale"}, {"text": None}]}, {"role": 7}) == "\n".join(
        [
            "(document): object 2",
            "parts: list 1",
            "parts[]: object 2",
            "parts[].text: null 1, str 1",
            "role: int 1, str 1",
        ]
    )


@pytest.mark.parametrize("key", HOSTILE)
def test_a_key_that_may_be_a_users_is_not_told(key: str) -> None:
    told = keys({"role": "user", "holder": {key: {"size": 1}}})
    assert key == "" or key not in told
    assert "holder.*.size: int 1" in told


def test_a_path_among_the_keys_makes_its_neighbours_data_too() -> None:
    told = keys({"kept": {"alice": {"version": 1}, "src/a.py": {"version": 2}}})
    assert "alice" not in told
    assert "kept.*.version: int 2" in told


def test_what_was_a_map_once_is_a_map_always() -> None:
    told = keys({"kept": {"alice": 1}}, {"kept": {"src/a.py": 1}}, {"kept": {"bob": 1}})
    assert "kept.*: int 3" in told
    assert not {"alice", "bob"} & set(told.replace(".", " ").replace(":", " ").split())


def test_objects_without_a_key_in_common_are_maps() -> None:
    told = keys(*({"by": {name: {"tokens": 1}}} for name in ("alice", "bob", "carol", "dave", "eve")))
    assert "by.*.tokens: int 5" in told
    assert "alice" not in told


@pytest.mark.parametrize("name", ["input", "args", "params", "result", "structuredContent"])
def test_nothing_within_what_a_tool_was_given_or_gave_back_is_named(name: str) -> None:
    told = keys({"call": {name: {"customer": [{"salary": {"amount": 1}}]}}})
    assert f"call.{name}.*[].*.*: int 1" in told
    assert not [word for word in ("customer", "salary", "amount") if word in told]


def test_keys_of_files_that_were_kept_are_data_whatever_they_look_like() -> None:
    told = keys({"trackedFileBackups": {"notes": {"version": 1}, "todo": {"version": 2}}})
    assert "trackedFileBackups.*.version: int 2" in told
    assert "notes" not in told


def test_an_object_with_very_many_keys_is_a_map() -> None:
    assert (
        keys({f"key{chr(97 + n % 26)}{'x' * (n // 26)}": n for n in range(80)})
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
def test_a_type_is_told_by_its_name_and_nothing_else_is(value: Any, shown: str) -> None:
    assert safe_name(value) == shown


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    )
)
def test_any_document_has_an_outline(document: Any) -> None:
    assert keys(document).startswith("(document): ")
