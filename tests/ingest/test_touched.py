"""Which files a message is about."""

from typing import Any

import pytest

from backscroll.model import Attachment, Edit, Message, Origin, ToolCall
from backscroll.model.searchable_text import paths_of


def called(params: dict[str, Any], **more: Any) -> Message:
    tool = ToolCall(id="1", name="whatever", params=params, edits=more.pop("edits", ()))
    return Message(id="1", role="tool", content="", origin=Origin("a", "line 1"), tool=tool, **more)


@pytest.mark.parametrize(
    "name",
    ["file_path", "path", "filePath", "notebook_path", "target_file", "relative_workspace_path", "targetFile",
     "relativeWorkspacePath", "target_directory", "effectiveUri_path"],
)  # fmt: skip
def test_an_argument_that_calls_itself_a_path_is_one(name: str) -> None:
    assert paths_of(called({name: "src/app.py", "pattern": "x", "old_string": "y"})) == ("src/app.py",)


def test_paths_are_found_in_lists_edits_and_attachments_each_once() -> None:
    message = called(
        {"paths": ["a.py", "b.py"], "edits": [{"file_path": "c.py"}], "limit": 3, "path": "a.py"},
        edits=(Edit("d.py"),),
        attachments=(Attachment("file", path="e.py"),),
    )
    assert paths_of(message) == ("e.py", "d.py", "a.py", "b.py", "c.py")


@pytest.mark.parametrize("value", ["", "x" * 5000, "two\nlines", 7, None, {"path": {"path": "deep"}}])
def test_what_cannot_be_a_path_is_none(value: object) -> None:
    assert paths_of(called({"path": value})) == ()
