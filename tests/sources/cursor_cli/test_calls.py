"""Calls and their answers: joined whatever their ids are like, and believed only when they succeeded."""

from pathlib import Path
from typing import Any

import pytest

from backscroll.model import ToolCall

from .reading import Store, UnitContent, assistant, call, only, result, said, user


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def tools(told: UnitContent) -> list[ToolCall]:
    return [message.tool for message in only(told).messages if message.tool is not None]


def noted(id: str, note: dict[str, Any], *, value: Any = "ok", name: str = "Shell") -> dict[str, Any]:
    """An answer with the tool's own account of the call beside it."""
    return result(id, value, name) | {"providerOptions": {"cursor": {"highLevelToolCallResult": note}}}


def write(id: str) -> dict[str, Any]:
    return assistant(call(id, "Write", path="/home/dev/shop/new.py", contents="x = 1\n"))


def test_two_calls_of_one_message_may_share_an_id(store: Store) -> None:
    told = store.say(
        user("go"), assistant(call("c"), call("c")), result("c", "one"), result("c", "two")
    ).read()
    assert [tool.result for tool in tools(told)] == ["one", "two"]


def test_a_call_left_without_answer_does_not_take_a_later_ones(store: Store) -> None:
    told = store.say(
        user("go"), assistant(call("c")), user("again"), assistant(call("c"), "now"), result("c", "late")
    ).read()
    assert [tool.result for tool in tools(told)] == [None, "late"]


def test_a_second_answer_to_one_call_is_kept_unless_it_says_the_same(store: Store) -> None:
    told = store.say(
        user("go"),
        assistant(call("c")),
        result("c", "one"),
        result("c", "one", name="Other"),
        result("c", "two"),
    ).read()
    assert [tool.result for tool in tools(told)] == ["one", "two"]


def test_a_numbers_id_joins_like_a_text(store: Store) -> None:
    part = {"type": "tool-result", "toolCallId": 7, "toolName": "Shell", "result": "ok"}
    asked = {"type": "tool-call", "toolCallId": 7, "toolName": "Shell", "args": {}}
    told = store.say(user("go"), assistant(asked), {"role": "tool", "content": [part]}).read()
    assert [(tool.id, tool.result) for tool in tools(told)] == [("7", "ok")]


def test_an_answer_may_be_the_whole_text_of_a_tools_message(store: Store) -> None:
    told = store.say(
        user("go"), assistant(call("c")), {"role": "tool", "id": "c", "content": "all of it"}
    ).read()
    assert said(told) == [("user", "go"), ("tool", "Shell: all of it")]


def test_an_answer_may_stand_in_a_users_message(store: Store) -> None:
    parts = [
        {"type": "tool_result", "tool_use_id": "c", "content": "ok"},
        {"type": "text", "text": "<user_query>and now?</user_query>"},
    ]
    told = store.say(user("go"), assistant(call("c")), {"role": "user", "content": parts}).read()
    assert said(told) == [("user", "go"), ("tool", "Shell: ok"), ("user", "and now?")]


@pytest.mark.parametrize(
    ("note", "status", "decision"),
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
def test_how_a_call_ended_is_what_the_tool_says_of_it(
    store: Store, note: Any, status: str, decision: str | None
) -> None:
    (tool,) = tools(store.say(user("go"), write("c"), noted("c", note, name="Write")).read())
    assert (tool.status, tool.decision) == (status, decision)
    assert bool(tool.edits) is (status == "completed")


def test_an_answer_that_only_the_tools_own_account_has_is_read_from_it(store: Store) -> None:
    note = {"output": {"success": {"stdout": "3 passed"}}}
    (tool,) = tools(store.say(user("go"), assistant(call("c")), noted("c", note, value=None)).read())
    assert tool.result is not None
    assert "3 passed" in tool.result


def test_a_failed_or_unanswered_call_has_edited_nothing(store: Store) -> None:
    told = store.say(
        user("go"), write("a"), result("a", "denied", "Write", isError=True), write("b"), user("stop")
    ).read()
    assert [(tool.status, tool.edits) for tool in tools(told)] == [("failed", ()), ("pending", ())]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (result("c", "Wrote contents to new.py", "Write"), "update"),
        (result("c", "File created successfully", "Write"), "create"),
        (noted("c", {"output": {"success": {"afterFullFileContent": "x = 1\n"}}}), "create"),
        (
            noted("c", {"output": {"success": {"afterFullFileContent": "x", "beforeFullFileContent": "y"}}}),
            "update",
        ),
    ],
)
def test_a_file_is_new_when_the_answer_says_so(store: Store, answer: dict[str, Any], kind: str) -> None:
    (tool,) = tools(store.say(user("go"), write("c"), answer).read())
    assert [(edit.kind, edit.added) for edit in tool.edits] == [(kind, 1)]


def test_half_of_a_step_under_way_may_already_be_told(store: Store) -> None:
    under_way = store.put(assistant("First this.", call("a"), call("b")))
    store.root(
        (1, store.put(user("go"))),
        (1, store.put(assistant("First this.", call("a")))),
        (1, store.put(result("a"))),
        (4, store.blobs[under_way.hex()] or b""),
    )
    assert said(store.read()) == [
        ("user", "go"),
        ("assistant", "First this."),
        ("tool", "Shell: ok"),
        ("tool", "Shell: None"),
    ]


def test_unknown_parts_and_roles_are_named_without_what_is_in_them(store: Store) -> None:
    told = store.say(
        {"role": "user", "content": [{"type": "hologram", "of": "a whale"}]},
        assistant("ok", {"type": "a type / with words", "x": 1}),
        {"role": {"name": "a whale"}, "content": "hm"},
    ).read()
    assert sorted(told.counts.unknown) == ["part type (str)", "part type hologram", "role (object)"]


def nameless(name: str, **args: Any) -> dict[str, Any]:
    return {"type": "tool-call", "toolName": name, "args": args}


def heard(value: str, name: str | None = "Shell", **more: Any) -> dict[str, Any]:
    """An answer without an id."""
    return {"role": "tool", "content": [{"type": "tool-result", "toolName": name, "result": value, **more}]}


def test_an_answer_without_an_id_joins_the_call_before_it(store: Store) -> None:
    told = store.say(user("go"), assistant("Look.", nameless("Shell", command="ls")), heard("a.py")).read()
    assert said(told) == [("user", "go"), ("assistant", "Look."), ("tool", "Shell: a.py")]
    assert [(tool.id, tool.params, tool.status) for tool in tools(told)] == [
        (None, {"command": "ls"}, "completed")
    ]


def test_answers_without_ids_join_the_calls_of_their_tools_in_order(store: Store) -> None:
    told = store.say(
        user("go"),
        assistant(nameless("Read", path="a"), nameless("Grep"), call("c"), nameless("Read", path="b")),
        heard("found", "Grep"),
        heard("of a", "Read"),
        result("c"),
        heard("of b", "Read"),
        assistant("Done."),
    ).read()
    assert [(tool.name, tool.result) for tool in tools(told)] == [
        ("Read", "of a"),
        ("Grep", "found"),
        ("Shell", "ok"),
        ("Read", "of b"),
    ]


@pytest.mark.parametrize(
    "later",
    [
        [heard("of one", "Read")],  # one of two
        [heard("x", "Grep"), heard("y", "Grep")],  # of another tool
        [assistant("Meanwhile."), heard("of a", "Read"), heard("of b", "Read")],
        [user("and?"), heard("of a", "Read"), heard("of b", "Read")],
        [heard("of a", "Read"), heard("of b", "Read"), heard("of c", "Read")],
        [heard("alone", None)],
    ],
)
def test_answers_without_ids_that_may_be_anybodys_stay_messages_of_their_own(
    store: Store, later: list[dict[str, Any]]
) -> None:
    asked = assistant(nameless("Read", path="a"), nameless("Read", path="b"))
    found = tools(store.say(user("go"), asked, *later).read())
    assert [tool.result for tool in found[:2]] == [None, None]
    answers = [part["content"][0]["result"] for part in later if part["role"] == "tool"]
    assert [tool.result for tool in found[2:]] == answers


def test_answers_that_name_neither_call_nor_tool_join_as_many_calls(store: Store) -> None:
    told = store.say(
        user("go"),
        assistant(nameless("Read", path="a"), nameless("Grep")),
        heard("of a", None),
        {"role": "tool", "content": "found"},
    ).read()
    assert [(tool.name, tool.result) for tool in tools(told)] == [("Read", "of a"), ("Grep", "found")]


def test_an_edit_without_an_id_is_believed_when_its_answer_says_it_succeeded(store: Store) -> None:
    def edited(answer: dict[str, Any]) -> list[tuple[str, int]]:
        asked = assistant(nameless("Write", path="/home/dev/shop/new.py", contents="x = 1\n"))
        (tool,) = tools(store.say(user("go"), asked, answer).read())
        return [(edit.kind, edit.added) for edit in tool.edits]

    assert edited(heard("File created successfully", "Write")) == [("create", 1)]
    assert edited(heard("denied", "Write", isError=True)) == []
