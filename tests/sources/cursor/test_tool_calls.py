"""Tool calls: arguments, results, status, decisions and edits."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from backscroll.model.message import Edit, Hunk, ToolCall
from backscroll.sources.cursor.session.tool_calls import edits_from_code_diff
from backscroll.testing import cursor
from tests.sources.cursor.reading import read_units, write_and_read


@pytest.fixture
def home(tmp_path: Path) -> cursor.Home:
    return cursor.Home(tmp_path / "Cursor")


def read_call(home: cursor.Home, tool: cursor.Tool, **options: Any) -> ToolCall:
    """Write a tool record and return its call."""
    session = write_and_read(home, cursor.Message("assistant", tool=tool, id="b1"), **options)
    (message,) = [message for message in session.messages if message.role == "tool"]
    assert message.tool is not None
    return message.tool


@pytest.mark.parametrize("spelling", ["json", "object", "double"])
def test_arguments_and_result_are_read_in_every_encoding(home: cursor.Home, spelling: Any) -> None:
    found = read_call(
        home, cursor.Tool("run_terminal_cmd", {"command": "ls"}, {"output": "a"}, encoding=spelling)
    )
    assert (found.params, found.result, found.status) == ({"command": "ls"}, "a", "completed")


def test_arguments_come_from_params_if_the_raw_ones_are_empty_or_not_json(home: cursor.Home) -> None:
    for raw in ("", "{broken", None):
        found = read_call(home, cursor.Tool("grep", {"pattern": "x"}, {}, fields={"rawArgs": raw}))
        assert found.params == {"pattern": "x"}


def test_arguments_that_are_not_json_are_kept_as_text(home: cursor.Home) -> None:
    found = read_call(home, cursor.Tool("grep", fields={"rawArgs": "pattern=x", "params": ""}))
    assert found.params == {"raw": "pattern=x"}


def test_a_number_beyond_64_bits_does_not_lose_the_arguments(home: cursor.Home) -> None:
    found = read_call(
        home, cursor.Tool("grep", fields={"rawArgs": '{"n": ' + "9" * 40 + ', "pattern": "x"}'})
    )
    assert found.params == {"n": 1e40, "pattern": "x"}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"output": "3 passed", "rejected": False, "notInterrupted": True}, "3 passed"),
        ({"output": "boom", "exitCode": 2, "rejected": False}, "boom\n[exit code 2]"),
        ({"diff": {"chunks": [{"diffString": "-a\n+b"}, {"diffString": "+c"}]}}, "-a\n+b\n+c"),
        ({"files": [{"name": "src", "isDirectory": True}, {"name": "a.py"}]}, "src/\na.py"),
        (
            {"directories": [{"absPath": "/w", "files": [{"relPath": "a.py"}], "totalFiles": 1}]},
            "/w/a.py\n[1 file in /w]",
        ),
        (
            {
                "success": {
                    "workspaceResults": {
                        "/w": {
                            "content": {
                                "matches": [
                                    {"file": "a.py", "matches": [{"lineNumber": 3, "content": "total"}]}
                                ]
                            }
                        }
                    }
                }
            },
            "a.py:3: total",
        ),
        ({"success": {"workspaceResults": {"/w": {"files": ["a.py", "b.py"]}}}}, "a.py\nb.py"),
        ({"contents": "def f(): ...", "totalLines": 1}, "def f(): ..."),
        ({"content": [{"type": "text", "text": "from a server"}]}, "from a server"),
        ("plain words", "plain words"),
        ("[1] + done", "[1] + done"),
        ({"odd": 1}, '{\n  "odd": 1\n}'),
    ],
)
def test_a_result_is_converted_to_text(home: cursor.Home, result: Any, text: str) -> None:
    assert read_call(home, cursor.Tool("any", {}, result)).result == text


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("loading", "pending"),
        ("running", "pending"),
        ("completed", "completed"),
        ("error", "failed"),
        ("cancelled", "cancelled"),
        ("rejected", "cancelled"),
    ],
)
def test_every_status_is_mapped(home: cursor.Home, status: str, expected: str) -> None:
    assert read_call(home, cursor.Tool("any", {}, None, status=status)).status == expected


def test_a_pending_call_has_no_result_and_a_completed_one_an_empty_result(home: cursor.Home) -> None:
    assert read_call(home, cursor.Tool("any", {}, None, status="loading")).result is None
    assert read_call(home, cursor.Tool("any", {}, None, status="completed")).result == ""


def test_a_failed_call_has_the_error_message_shown_to_the_user(home: cursor.Home) -> None:
    error = {"clientVisibleErrorMessage": "No such host", "modelVisibleErrorMessage": "dns"}
    found = read_call(home, cursor.Tool("web_fetch", {}, None, status="error", error=error))
    assert (found.status, found.result, found.is_error) == ("failed", "No such host", True)


def test_two_bubbles_with_one_call_id_are_two_calls(home: cursor.Home) -> None:
    one = cursor.Message("assistant", tool=cursor.Tool("a", {}, "1", call_id="call_1"))
    two = cursor.Message("assistant", tool=cursor.Tool("b", {}, "2", call_id="call_1"))
    session = write_and_read(home, one, two)
    assert [message.tool and (message.tool.name, message.tool.id) for message in session.messages] == [
        ("a", "call_1"),
        ("b", None),
    ]


def test_a_shell_call_has_its_working_directory(home: cursor.Home) -> None:
    session = write_and_read(
        home, cursor.tool("run_terminal_cmd", {"command": "ls", "cwd": "/w"}, {"output": ""})
    )
    assert session.messages[0].cwd == "/w"


def test_the_answer_of_the_user_overrides_the_flag_of_auto_run(home: cursor.Home) -> None:
    review = {"reviewData": {"status": "Done", "selectedOption": "skip"}}
    found = read_call(home, cursor.Tool("rm", {}, {}, decision="accepted", additional=review))
    assert found.decision == "rejected"
    assert read_call(home, cursor.Tool("rm", {}, {}, decision="accepted")).decision == "accepted"
    assert read_call(home, cursor.Tool("rm", {}, {"output": "", "rejected": True})).decision == "rejected"
    assert read_call(home, cursor.Tool("rm", {}, {})).decision is None


def code_block_data(status: str, **fields: Any) -> dict[str, Any]:
    block = {"version": 0, "status": status, "bubbleId": "b1", "content": "x = 1\ny = 2"} | fields
    return {"codeBlockData": {"file:///w/a.py": [block]}}


def test_the_status_of_the_code_overrides_the_flag_of_auto_run(home: cursor.Home) -> None:
    tool = cursor.Tool("edit_file", {"target_file": "/w/a.py"}, {}, decision="accepted")
    assert read_call(home, tool, data=code_block_data("rejected")).decision == "rejected"
    assert read_call(home, tool, data=code_block_data("completed")).decision == "accepted"


def test_accepted_and_rejected_hunks_make_a_modified_proposal(home: cursor.Home) -> None:
    session_id = "fa7e0000-0000-4000-8000-000000000001"
    home.put(
        f"codeBlockPartialInlineDiffFates:{session_id}:d1",
        '{"fates": [{"fate": "accepted"}, {"fate": "rejected"}]}',
    )
    tool = cursor.Tool("edit_file", {"target_file": "/w/a.py"}, {})
    session = write_and_read(
        home,
        cursor.Message("assistant", tool=tool, id="b1"),
        id=session_id,
        data=code_block_data("accepted", diffId="d1"),
    )
    assert session.messages[0].tool and session.messages[0].tool.decision == "modified"
    assert session.closing.metadata["decision_evidence"] == {"codeBlockPartialInlineDiffFates": 1}


def test_proposed_code_in_an_answer_is_a_tool_call(home: cursor.Home) -> None:
    """Before tools existed, the editor offered to apply the code of an answer."""
    uri = {"scheme": "file", "fsPath": "/w/a.py", "external": "file:///w/a.py"}
    message = cursor.Message(
        "assistant", "Like this.", id="b1", fields={"codeBlocks": [{"uri": uri, "version": 0}]}
    )
    session = write_and_read(home, message, data=code_block_data("accepted", bubbleId=None, uri=uri))
    text, call = session.messages
    assert (text.role, call.role, call.kind) == ("assistant", "tool", "code block")
    assert call.tool and call.tool.decision == "accepted"
    assert call.tool.edits == (Edit("/w/a.py", (Hunk((), ("x = 1", "y = 2")),)),)


def test_an_edit_comes_from_the_diff_in_the_result(home: cursor.Home) -> None:
    chunk = {"diffString": " a\n-b\n+c\n+d\n e\n-f", "oldStart": 3, "newStart": 4}
    found = read_call(
        home, cursor.Tool("edit_file_v2", {"relativeWorkspacePath": "/w/a.py"}, {"diff": {"chunks": [chunk]}})
    )
    hunks = Hunk(("b",), ("c", "d"), 4, 5), Hunk(("f",), (), 6, 8)
    assert found.edits == (Edit("/w/a.py", hunks),)


def test_a_space_after_the_sign_is_not_part_of_the_line(home: cursor.Home) -> None:
    result = {"diff": {"chunks": [{"diffString": "  a\n- b\n+   c\n+"}]}}
    found = read_call(home, cursor.Tool("edit_file", {"target_file": "/w/a.py"}, result))
    assert found.edits[0].hunks == (Hunk(("b",), ("  c", "")),)


def test_an_edit_comes_from_the_stored_diff(home: cursor.Home) -> None:
    session_id = "fa7e0000-0000-4000-8000-000000000002"
    line = {"original": {"startLineNumber": 4, "endLineNumberExclusive": 6}, "modified": ["new"]}
    home.put(f"codeBlockDiff:{session_id}:d1", json.dumps({"newModelDiffWrtV0": [line]}))
    found = read_call(
        home,
        cursor.Tool("edit_file", {"target_file": "/w/a.py"}, {"ok": True}),
        id=session_id,
        data=code_block_data("accepted", diffId="d1"),
    )
    (change,) = found.edits
    assert (change.path, change.added, change.removed) == ("/w/a.py", 1, 2)
    assert change.hunks == (Hunk((), ("new",), 4, None),)


@pytest.mark.parametrize(
    ("name", "params", "edits"),
    [
        (
            "search_replace",
            {"file_path": "a.py", "old_string": "a\nb", "new_string": "c"},
            (Edit("a.py", (Hunk(("a", "b"), ("c",)),)),),
        ),
        (
            "MultiEdit",
            {"file_path": "a.py", "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c"}]},
            (Edit("a.py", (Hunk(("a",), ("b",)), Hunk(("c",), ()))),),
        ),
        ("write", {"file_path": "a.py", "contents": "x\ny"}, (Edit("a.py", (Hunk((), ("x", "y")),)),)),
        ("delete_file", {"target_file": "a.py"}, (Edit("a.py", (), "delete"),)),
        (
            "apply_patch",
            {"patch": "*** Begin Patch\n*** Add File: n.py\n+x\n*** Update File: a.py\n@@\n-a\n+b\n c\n+d\n"},
            (
                Edit("n.py", (Hunk((), ("x",)),), "create"),
                Edit("a.py", (Hunk(("a",), ("b",)), Hunk((), ("d",)))),
            ),
        ),
        ("read_file", {"target_file": "a.py"}, ()),
    ],
)
def test_an_edit_comes_from_the_arguments(
    home: cursor.Home, name: str, params: dict[str, Any], edits: tuple[Edit, ...]
) -> None:
    assert read_call(home, cursor.Tool(name, params, {"ok": True})).edits == edits


def test_a_failed_edit_changes_nothing(home: cursor.Home) -> None:
    params = {"file_path": "a.py", "old_string": "a", "new_string": "b"}
    assert read_call(home, cursor.Tool("search_replace", params, None, status="error")).edits == ()
    result = {"diff": {"chunks": [{"diffString": "-a\n+b"}]}, "applyFailed": True}
    found = read_call(home, cursor.Tool("edit_file", params, result))
    assert (found.status, found.edits) == ("failed", ())


def test_a_call_that_started_a_subagent_is_linked_to_it(tmp_path: Path) -> None:
    home = cursor.Home(tmp_path / "Cursor")
    child = {"subagentComposerId": "c41d0000-0000-4000-8000-000000000009"}
    tool = cursor.Tool("task_v2", {}, {}, call_id="call_9", additional=child)
    home.composer([cursor.Message("assistant", tool=tool)])
    (link,) = [link for content in read_units(home.write()).values() for link in content.links]
    assert (link.agent_id, link.tool_call_id) == (child["subagentComposerId"], "call_9")


def test_the_error_replaces_an_empty_result(home: cursor.Home) -> None:
    error = {"clientVisibleErrorMessage": "no such file"}
    for result in ("{}", "[]", '""', ""):
        found = read_call(home, cursor.Tool("grep", status="error", error=error, fields={"result": result}))
        assert (found.result, found.status) == ("no such file", "failed")


def test_the_error_is_appended_to_a_result(home: cursor.Home) -> None:
    found = read_call(
        home, cursor.Tool("grep", {}, {"output": "half"}, status="error", error={"message": "broke"})
    )
    assert found.result == "half\nbroke"


def test_a_rejected_command_is_cancelled_despite_the_flag_of_auto_run(home: cursor.Home) -> None:
    result = {"output": "", "rejected": True}
    found = read_call(
        home, cursor.Tool("run_terminal_cmd", {}, result, status="completed", decision="accepted")
    )
    assert (found.status, found.decision) == ("cancelled", "rejected")


@pytest.mark.parametrize(
    ("stored", "status"), [("success", "completed"), ("error", "failed"), ("loading", "pending")]
)
def test_a_call_without_status_has_the_status_of_its_additional_data(
    home: cursor.Home, stored: str, status: str
) -> None:
    tool = cursor.Tool("grep", {}, {"output": "x"}, additional={"status": stored}, fields={"status": None})
    assert read_call(home, tool).status == status


def test_lines_are_split_only_at_newlines(home: cursor.Home) -> None:
    text = "a\x0cb\u2028c\r\nd\n"
    params = {"file_path": "/w/a.py", "old_string": "x\x0by", "new_string": text}
    (edit,) = read_call(home, cursor.Tool("search_replace", params)).edits
    assert edit.hunks == (Hunk(("x\x0by",), ("a\x0cb\u2028c", "d")),)
    result = {"diff": {"chunks": [{"diffString": "-x\x0cy\n+z\u2028"}]}}
    (edit,) = read_call(home, cursor.Tool("edit_file", {"target_file": "/w/a.py"}, result)).edits
    assert edit.hunks == (Hunk(("x\x0cy",), ("z\u2028",)),)


def test_a_stored_diff_of_thousands_of_changes_is_compared_in_one_pass(home: cursor.Home) -> None:
    def change(line: int) -> dict[str, Any]:
        return {"original": {"startLineNumber": line, "endLineNumberExclusive": line + 1}, "modified": ["x"]}

    before = [change(line) for line in range(20_000)]
    record = {"originalModelDiffWrtV0": before, "newModelDiffWrtV0": [*before, change(90_000)]}
    started_at = time.process_time()
    (edit,) = edits_from_code_diff("/w/a.py", record)
    assert time.process_time() - started_at < 2
    assert edit.hunks == (Hunk((), ("x",), 90_000, None),)


def test_additional_data_does_not_change_the_name_of_a_call(home: cursor.Home) -> None:
    additional = {"status": "success", "startedAtMs": 1_790_000_010_000, "codeblockId": "c" * 36}
    assert (
        read_call(home, cursor.Tool("edit_file", {"target_file": "/w/a.py"}, additional=additional)).name
        == "edit_file"
    )
