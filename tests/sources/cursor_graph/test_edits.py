"""File edits from the arguments of tool calls."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.model.message import Edit, Hunk
from backscroll.sources.cursor_graph.tool_calls import parse_edits


@pytest.mark.parametrize(
    ("name", "params", "edits"),
    [
        ("Write", {"path": "a.py", "contents": "one\ntwo\n"}, (Edit("a.py", (Hunk(added=("one", "two")),)),)),
        (
            "StrReplace",
            {"path": "a.py", "old_string": "x", "new_string": "y\nz"},
            (Edit("a.py", (Hunk(("x",), ("y", "z")),)),),
        ),
        (
            "search_replace",
            {"file_path": "a.py", "old_string": "x", "new_string": ""},
            (Edit("a.py", (Hunk(("x",)),)),),
        ),
        (
            "MultiEdit",
            {
                "path": "a.py",
                "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3", "new_string": "4"}],
            },
            (Edit("a.py", (Hunk(("1",), ("2",)), Hunk(("3",), ("4",)))),),
        ),
        ("Delete", {"path": "a.py"}, (Edit("a.py", kind="delete"),)),
        ("Read", {"path": "a.py"}, ()),
        ("Write", {"contents": "nowhere"}, ()),
        ("Edit", {"path": "a.py", "instructions": "make it faster"}, ()),
    ],
)
def test_edits_are_derived_from_the_arguments(
    name: str, params: dict[str, Any], edits: tuple[Edit, ...]
) -> None:
    assert parse_edits(name, params) == edits


def test_a_patch_in_the_format_of_models_has_edits_per_file() -> None:
    patch = """*** Begin Patch
*** Update File: cart.py
@@ def total():
 kept
-old
+new
 kept
+more
*** Add File: tests/test_cart.py
+def test(): ...
*** Delete File: gone.py
*** End Patch"""
    assert parse_edits("ApplyPatch", {"patch": patch}) == (
        Edit("cart.py", (Hunk(("old",), ("new",)), Hunk((), ("more",)))),
        Edit("tests/test_cart.py", (Hunk((), ("def test(): ...",)),), "create"),
        Edit("gone.py", (), "delete"),
    )


def test_a_diff_has_edits_per_file() -> None:
    patch = """diff --git a/cart.py b/cart.py
--- a/cart.py
+++ b/cart.py
@@ -1,3 +1,3 @@
 kept
--- a comment in SQL
+-- another
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+one
"""
    assert parse_edits("apply_patch", {"input": patch}) == (
        Edit("cart.py", (Hunk(("-- a comment in SQL",), ("-- another",)),)),
        Edit("new.py", (Hunk((), ("one",)),), "create"),
    )


@given(
    st.sampled_from(["Write", "Edit", "MultiEdit", "ApplyPatch", "Delete"]),
    st.dictionaries(
        st.sampled_from(["path", "contents", "old_string", "new_string", "edits", "patch"]),
        st.none()
        | st.integers()
        | st.text()
        | st.lists(st.integers() | st.dictionaries(st.text(), st.text())),
    ),
)
def test_any_arguments_can_be_parsed(name: str, params: dict[str, Any]) -> None:
    for edit in parse_edits(name, params):
        assert isinstance(edit.path, str)
