"""Tool calls and results: joined with and without ids, and edits only of successful calls."""

import json
from pathlib import Path
from typing import Any

import pytest

from backscroll.model.message import ToolCall

from .store_builder import Store, UnitContent, assistant, call, main_session, result, roles_and_texts, user


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def tools(content: UnitContent) -> list[ToolCall]:
    return [message.tool for message in main_session(content).messages if message.tool is not None]


def reported(id: str, report: dict[str, Any], *, value: Any = "ok", name: str = "Shell") -> dict[str, Any]:
    """Return a result with the tool's report of the call."""
    return result(id, value, name) | {"providerOptions": {"cursor": {"highLevelToolCallResult": report}}}


def write(id: str) -> dict[str, Any]:
    return assistant(call(id, "Write", path="/home/dev/shop/new.py", contents="x = 1\n"))


def test_two_calls_of_one_message_may_share_an_id(store: Store) -> None:
    content = store.with_messages(
        user("go"), assistant(call("c"), call("c")), result("c", "one"), result("c", "two")
    ).read()
    assert [tool.result for tool in tools(content)] == ["one", "two"]


def test_a_call_without_a_result_does_not_get_the_result_of_a_later_call(store: Store) -> None:
    content = store.with_messages(
        user("go"), assistant(call("c")), user("again"), assistant(call("c"), "now"), result("c", "late")
    ).read()
    assert [tool.result for tool in tools(content)] == [None, "late"]


def test_a_second_result_of_one_call_is_kept_unless_it_is_the_same(store: Store) -> None:
    content = store.with_messages(
        user("go"),
        assistant(call("c")),
        result("c", "one"),
        result("c", "one", name="Other"),
        result("c", "two"),
    ).read()
    assert [tool.result for tool in tools(content)] == ["one", "two"]


def test_a_numeric_id_joins_like_a_text_id(store: Store) -> None:
    part = {"type": "tool-result", "toolCallId": 7, "toolName": "Shell", "result": "ok"}
    called = {"type": "tool-call", "toolCallId": 7, "toolName": "Shell", "args": {}}
    content = store.with_messages(user("go"), assistant(called), {"role": "tool", "content": [part]}).read()
    assert [(tool.id, tool.result) for tool in tools(content)] == [("7", "ok")]


def test_a_result_may_be_the_whole_text_of_a_tool_message(store: Store) -> None:
    content = store.with_messages(
        user("go"), assistant(call("c")), {"role": "tool", "id": "c", "content": "all of it"}
    ).read()
    assert roles_and_texts(content) == [("user", "go"), ("tool", "Shell: all of it")]


def test_a_result_may_be_part_of_a_user_message(store: Store) -> None:
    parts = [
        {"type": "tool_result", "tool_use_id": "c", "content": "ok"},
        {"type": "text", "text": "<user_query>and now?</user_query>"},
    ]
    content = store.with_messages(user("go"), assistant(call("c")), {"role": "user", "content": parts}).read()
    assert roles_and_texts(content) == [("user", "go"), ("tool", "Shell: ok"), ("user", "and now?")]


@pytest.mark.parametrize(
    ("report", "status", "decision"),
    [
        ({"output": {"success": {}}, "isError": False}, "completed", None),
        ({"output": {"success": {}}}, "completed", None),
        ({"output": {"success": {}}, "isError": True}, "failed", None),
        ({"output": {"success": {}, "isError": True}}, "failed", None),
        ({"output": {"error": {"path": "/x"}}}, "failed", None),
        ({"output": {"rejected": {"reason": "no"}}, "isError": True}, "cancelled", "rejected"),
        ({"output": []}, "completed", None),
        ("nothing", "completed", None),
    ],
)
def test_the_status_of_a_call_comes_from_the_report_of_the_tool(
    store: Store, report: Any, status: str, decision: str | None
) -> None:
    (tool,) = tools(store.with_messages(user("go"), write("c"), reported("c", report, name="Write")).read())
    assert (tool.status, tool.decision) == (status, decision)
    assert bool(tool.edits) is (status == "completed")


def test_a_result_that_is_only_in_the_report_is_read_from_it(store: Store) -> None:
    report = {"output": {"success": {"stdout": "3 passed"}}}
    (tool,) = tools(
        store.with_messages(user("go"), assistant(call("c")), reported("c", report, value=None)).read()
    )
    assert tool.result is not None
    assert "3 passed" in tool.result


def test_a_failed_or_pending_call_has_no_edits(store: Store) -> None:
    content = store.with_messages(
        user("go"), write("a"), result("a", "denied", "Write", isError=True), write("b"), user("stop")
    ).read()
    assert [(tool.status, tool.edits) for tool in tools(content)] == [("failed", ()), ("pending", ())]


@pytest.mark.parametrize(
    ("tool_result", "kind"),
    [
        (result("c", "Wrote contents to new.py", "Write"), "update"),
        (result("c", "File created successfully", "Write"), "create"),
        (reported("c", {"output": {"success": {"afterFullFileContent": "x = 1\n"}}}), "create"),
        (
            reported(
                "c", {"output": {"success": {"afterFullFileContent": "x", "beforeFullFileContent": "y"}}}
            ),
            "update",
        ),
    ],
)
def test_a_file_is_new_if_the_result_or_report_shows_it(
    store: Store, tool_result: dict[str, Any], kind: str
) -> None:
    (tool,) = tools(store.with_messages(user("go"), write("c"), tool_result).read())
    assert [(edit.kind, edit.added) for edit in tool.edits] == [(kind, 1)]


def test_messages_of_an_unfinished_step_are_not_repeated(store: Store) -> None:
    pending_step = store.put(assistant("First this.", call("a"), call("b")))
    store.root(
        (1, store.put(user("go"))),
        (1, store.put(assistant("First this.", call("a")))),
        (1, store.put(result("a"))),
        (4, store.blobs[pending_step.hex()] or b""),
    )
    assert roles_and_texts(store.read()) == [
        ("user", "go"),
        ("assistant", "First this."),
        ("tool", "Shell: ok"),
        ("tool", "Shell: None"),
    ]


def test_unknown_parts_and_roles_are_counted_without_their_content(store: Store) -> None:
    content = store.with_messages(
        {"role": "user", "content": [{"type": "hologram", "of": "a whale"}]},
        assistant("ok", {"type": "a type / with words", "x": 1}),
        {"role": {"name": "a whale"}, "content": "hm"},
    ).read()
    assert sorted(content.counts.unknown) == ["part type (str)", "part type hologram", "role (object)"]


def call_without_id(name: str, **args: Any) -> dict[str, Any]:
    return {"type": "tool-call", "toolName": name, "args": args}


def result_without_id(value: str, name: str | None = "Shell", **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": [{"type": "tool-result", "toolName": name, "result": value, **fields}]}


def test_a_result_without_an_id_joins_the_call_before_it(store: Store) -> None:
    content = store.with_messages(
        user("go"), assistant("Look.", call_without_id("Shell", command="ls")), result_without_id("a.py")
    ).read()
    assert roles_and_texts(content) == [("user", "go"), ("assistant", "Look."), ("tool", "Shell: a.py")]
    assert [(tool.id, tool.params, tool.status) for tool in tools(content)] == [
        (None, {"command": "ls"}, "completed")
    ]


def test_results_without_ids_join_the_calls_of_their_tools_in_order(store: Store) -> None:
    content = store.with_messages(
        user("go"),
        assistant(
            call_without_id("Read", path="a"),
            call_without_id("Grep"),
            call("c"),
            call_without_id("Read", path="b"),
        ),
        result_without_id("found", "Grep"),
        result_without_id("of a", "Read"),
        result("c"),
        result_without_id("of b", "Read"),
        assistant("Done."),
    ).read()
    assert [(tool.name, tool.result) for tool in tools(content)] == [
        ("Read", "of a"),
        ("Grep", "found"),
        ("Shell", "ok"),
        ("Read", "of b"),
    ]


@pytest.mark.parametrize(
    "later",
    [
        [result_without_id("of one", "Read")],  # one of two
        [result_without_id("x", "Grep"), result_without_id("y", "Grep")],  # of another tool
        [assistant("Meanwhile."), result_without_id("of a", "Read"), result_without_id("of b", "Read")],
        [user("and?"), result_without_id("of a", "Read"), result_without_id("of b", "Read")],
        [
            result_without_id("of a", "Read"),
            result_without_id("of b", "Read"),
            result_without_id("of c", "Read"),
        ],
        [result_without_id("alone", None)],
    ],
)
def test_ambiguous_results_without_ids_remain_separate_messages(
    store: Store, later: list[dict[str, Any]]
) -> None:
    calls = assistant(call_without_id("Read", path="a"), call_without_id("Read", path="b"))
    found = tools(store.with_messages(user("go"), calls, *later).read())
    assert [tool.result for tool in found[:2]] == [None, None]
    results = [part["content"][0]["result"] for part in later if part["role"] == "tool"]
    assert [tool.result for tool in found[2:]] == results


def test_results_without_id_and_tool_name_join_the_same_number_of_calls(store: Store) -> None:
    content = store.with_messages(
        user("go"),
        assistant(call_without_id("Read", path="a"), call_without_id("Grep")),
        result_without_id("of a", None),
        {"role": "tool", "content": "found"},
    ).read()
    assert [(tool.name, tool.result) for tool in tools(content)] == [("Read", "of a"), ("Grep", "found")]


def test_an_edit_without_an_id_counts_only_if_its_result_is_successful(store: Store) -> None:
    def edits(tool_result: dict[str, Any]) -> list[tuple[str, int]]:
        calls = assistant(call_without_id("Write", path="/home/dev/shop/new.py", contents="x = 1\n"))
        (tool,) = tools(store.with_messages(user("go"), calls, tool_result).read())
        return [(edit.kind, edit.added) for edit in tool.edits]

    assert edits(result_without_id("File created successfully", "Write")) == [("create", 1)]
    assert edits(result_without_id("denied", "Write", isError=True)) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ([{"type": "text", "text": "line 1"}, {"type": "text", "text": "line 2"}], "line 1\nline 2"),
        ({"type": "text", "value": "enveloped"}, "enveloped"),
        ({"type": "content", "value": [{"type": "text", "text": "deep"}]}, "deep"),
        ({"exitCode": 0}, '{\n  "exitCode": 0\n}'),
        (["a", "b"], '[\n  "a",\n  "b"\n]'),
        (7, "7"),
    ],
)
def test_results_of_every_shape_are_converted_to_text(store: Store, value: object, text: str) -> None:
    store.with_messages(user("go"), assistant(call("c1")), result("c1", value))
    assert roles_and_texts(store.read())[-1] == ("tool", f"Shell: {text}")


def test_a_result_without_text_is_read_from_experimental_content(store: Store) -> None:
    other = {"experimental_content": [{"type": "text", "text": "from there"}]}
    store.with_messages(user("go"), assistant(call("c1")), result("c1", None, **other))
    assert roles_and_texts(store.read())[-1] == ("tool", "Shell: from there")


def test_a_failed_call_is_failed_and_one_without_a_result_is_pending(store: Store) -> None:
    store.with_messages(
        user("go"),
        assistant(call("c1"), call("c2"), call("c3")),
        result("c1", "no such command", isError=True),
        result("c2"),
    )
    statuses = [message.tool.status for message in main_session(store.read()).messages if message.tool]
    assert statuses == ["failed", "completed", "pending"]


def test_a_result_without_its_call_is_kept(store: Store) -> None:
    store.with_messages(user("go"), result("lost", "still here", "Grep"))
    assert roles_and_texts(store.read())[-1] == ("tool", "Grep: still here")


def test_calls_with_the_same_id_in_different_turns_keep_their_own_results(store: Store) -> None:
    store.with_messages(
        user("one"),
        assistant(call("0")),
        result("0", "first"),
        user("two"),
        assistant("-", call("0")),
        result("0", "second"),
    )
    results = [message.tool.result for message in main_session(store.read()).messages if message.tool]
    assert results == ["first", "second"]


def test_arguments_are_read_from_the_key_of_each_version(store: Store) -> None:
    raw = {"cursor": {"rawToolCallArgs": json.dumps({"command": "raw"})}}
    parts = [
        {"type": "tool-call", "toolCallId": "1", "toolName": "Shell", "args": {"command": "args"}},
        {"type": "tool-call", "toolCallId": "2", "toolName": "Shell", "input": {"command": "input"}},
        {
            "type": "tool-call",
            "toolCallId": "3",
            "toolName": "Shell",
            "args": json.dumps(json.dumps({"command": "twice"})),
        },
        {"type": "tool-call", "toolCallId": "4", "toolName": "Shell", "args": {}, "providerOptions": raw},
        {"type": "tool-call", "toolCallId": "5", "toolName": "Shell", "args": "not JSON"},
    ]
    store.with_messages(user("go"), assistant(*parts))
    params = [message.tool.params for message in main_session(store.read()).messages if message.tool]
    assert params == [
        {"command": "args"},
        {"command": "input"},
        {"command": "twice"},
        {"command": "raw"},
        {"raw": "not JSON"},
    ]


def test_calls_in_the_tool_calls_field_are_read(store: Store) -> None:
    function = {"name": "Read", "arguments": '{"path": "a.py"}'}
    store.with_messages(
        user("go"),
        {"role": "assistant", "content": "Looking.", "tool_calls": [{"id": "c1", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "text of a.py"},
    )
    content = store.read()
    assert roles_and_texts(content)[1:] == [("assistant", "Looking."), ("tool", "Read: text of a.py")]
