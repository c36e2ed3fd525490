"""Paths of the files that a message refers to."""

from typing import Any

import pytest

from backscroll.model.message import Attachment, Edit, Message, Origin, ToolCall
from backscroll.model.search import paths_of


def tool_message(params: dict[str, Any], **fields: Any) -> Message:
    tool = ToolCall(id="1", name="any tool", params=params, edits=fields.pop("edits", ()))
    return Message(id="1", role="tool", content="", origin=Origin("a", "line 1"), tool=tool, **fields)


@pytest.mark.parametrize(
    "name",
    ["file_path", "path", "filePath", "notebook_path", "target_file", "relative_workspace_path", "targetFile",
     "relativeWorkspacePath", "target_directory", "effectiveUri_path"],
)  # fmt: skip
def test_an_argument_named_like_a_path_is_a_path(name: str) -> None:
    assert paths_of(tool_message({name: "src/app.py", "pattern": "x", "old_string": "y"})) == ("src/app.py",)


def test_each_path_in_lists_edits_and_attachments_is_returned_once() -> None:
    message = tool_message(
        {"paths": ["a.py", "b.py"], "edits": [{"file_path": "c.py"}], "limit": 3, "path": "a.py"},
        edits=(Edit("d.py"),),
        attachments=(Attachment("file", path="e.py"),),
    )
    assert paths_of(message) == ("e.py", "d.py", "a.py", "b.py", "c.py")


@pytest.mark.parametrize("value", ["", "x" * 5000, "two\nlines", 7, None, {"path": {"path": "deep"}}])
def test_an_invalid_path_is_ignored(value: object) -> None:
    assert paths_of(tool_message({"path": value})) == ()
