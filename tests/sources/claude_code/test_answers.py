"""Results in any form, in any order, with any call or none."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from backscroll.model import ToolCall, Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.sources.claude_code.transcript.checkpoint import ReaderState
from backscroll.testing.claude_code import Call, Transcript, blocks, tool_calls
from tests.sources.claude_code.reading import in_two, only, said, tell, tools


def answered(content: Any, root: Path) -> ToolCall:
    """A call that got this answer."""
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("ls")])
    session.result(session.tool_ids[-1], content)
    (tool,) = tools(only(session, root).messages)
    return tool


def swapped(session: Transcript) -> Transcript:
    """The last two lines in the wrong order."""
    session.records[-2:] = reversed(session.records[-2:])
    return session


def left(path: Path) -> ReaderState:
    """What is kept for the next reading."""
    *_, tally = ClaudeCode().read(Unit("claude-code", "", str(path)))
    assert tally.checkpoint is not None  # type: ignore[union-attr]
    return msgspec.msgpack.decode(tally.checkpoint.state, type=ReaderState)  # type: ignore[union-attr]


@pytest.mark.parametrize("has_copy", [True, False])
def test_an_edit_answered_before_it_was_asked_for_is_still_an_edit(has_copy: bool, tmp_path: Path) -> None:
    call = tool_calls.edit("/a.py", "one", "two", original="one\n", user_modified=has_copy)
    session = swapped(Transcript().user("go").run(call))
    if not has_copy:
        session.change(lambda record: record.pop("toolUseResult", None) and None)
    path = session.write(tmp_path)
    (tool,) = tools(tell(path).sessions[0].messages)
    (edit,) = tool.edits
    assert (edit.path, edit.added, edit.removed) == ("/a.py", 1, 1)
    assert (tool.status, tool.decision) == ("completed", "modified" if has_copy else "accepted")
    kept = left(path)
    assert (kept.pending, kept.early, kept.early_size) == ({}, {}, 0)


def test_an_agent_that_answered_before_it_was_asked_is_linked(tmp_path: Path) -> None:
    session = Transcript(version="2.1.97").user("go").delegate("Look", "Seen.", layout="flat")
    told = tell(swapped(session).write(tmp_path))
    (agent,) = told.sessions[0].closing.agents
    assert (agent.prompt, agent.total_tokens, agent.tool_call_id) == ("Look", 5120, session.tool_ids[-1])
    assert [(link.agent_id, link.tool_call_id) for link in told.links] == [
        (agent.agent_id, agent.tool_call_id)
    ]


def test_an_answer_may_be_read_long_before_its_call(tmp_path: Path) -> None:
    path = swapped(Transcript().user("go").run(tool_calls.edit("/a", "x", "y", original="x\n"))).write(
        tmp_path
    )
    data = path.read_bytes()
    (tool,) = tools(in_two(path, data.rindex(b"\n", 0, -1) + 1).sessions[0].messages)
    assert (tool.status, len(tool.edits)) == ("completed", 1)


def test_what_is_kept_of_answers_without_calls_is_bounded(tmp_path: Path) -> None:
    session = Transcript().user("go")
    for number in range(40):
        session.result(f"toolu_{number}", "x" * 200_000)
    path = session.write(tmp_path)
    assert sum(early.size for early in left(path).early.values()) <= 4 * 1024 * 1024
    assert len(tools(tell(path).sessions[0].messages)) == 40


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"stdout": "hi there"}, '{"stdout":"hi there"}'),
        ({"type": "text", "text": "one block"}, "one block"),
        ([{"type": "resource", "resource": {"uri": "u", "text": "a resource"}}], "a resource"),
        ([{"type": "json", "value": {"a": 1}}], '{"type":"json","value":{"a":1}}'),
        ([["x"], 3, None, {"type": "search_result", "content": [blocks.text("inner")]}], "x\n3\ninner"),
        ([{"type": "tool_reference", "tool_name": "Read"}], "[tool Read]"),
        (["bare", "strings"], "bare\nstrings"),
        (42, "42"),
        (None, ""),
        ([None], ""),
    ],
)
def test_a_result_in_any_form_can_be_read(content: Any, words: str, tmp_path: Path) -> None:
    tool = answered(content, tmp_path)
    assert (tool.result, tool.status) == (words, "completed")


@pytest.mark.parametrize("depth", [*range(200, 1100, 90), 5000, 50_000])
def test_a_result_nested_without_end_harms_nobody(depth: int, tmp_path: Path) -> None:
    session = Transcript().user("before")
    deep = b"[" * depth + b"]" * depth
    session.raw(b'{"type":"tool_result","name":"x","sessionId":"s","output":' + deep + b"}").user("after")
    assert said(tell(session.write(tmp_path)).sessions[0].messages, "user") == ["before", "after"]


def test_a_web_search_gives_titles_and_addresses(tmp_path: Path) -> None:
    call = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "tz"}}
    page = {
        "type": "web_search_result",
        "title": "Oslo",
        "url": "https://tz.example",
        "encrypted_content": "zz",
    }
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [page]}
    session = Transcript().user("go").assistant(extra_blocks=[call, found])
    (tool,) = tools(only(session, tmp_path).messages)
    assert (tool.name, tool.result, tool.status) == ("web_search", "Oslo\nhttps://tz.example", "completed")


def test_a_web_search_that_failed_says_why(tmp_path: Path) -> None:
    call = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "tz"}}
    error = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    answer = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": error}
    (tool,) = tools(only(Transcript().user("go").assistant(extra_blocks=[call, answer]), tmp_path).messages)
    assert (tool.result, tool.status) == ("max_uses_exceeded", "failed")


def test_a_result_that_names_no_call_is_kept(tmp_path: Path) -> None:
    session = Transcript().user("go").user_line([{"type": "tool_result", "content": "important output"}])
    (tool,) = tools(only(session, tmp_path).messages)
    assert tool.result == "important output"


def test_a_result_without_its_call_does_not_give_way_to_the_words_beside_it(tmp_path: Path) -> None:
    results = [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"output {n}"} for n in (1, 2)]
    session = Transcript().user("go").user_line([*results, blocks.text("and my own words")])
    messages = only(session, tmp_path).messages
    assert [tool.result for tool in tools(messages)] == ["output 1", "output 2"]
    assert said(messages, "user") == ["go", "and my own words"]


def test_an_image_beside_a_result_comes_along_with_it(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("shoot")])
    result = {"type": "tool_result", "tool_use_id": session.tool_ids[-1], "content": "taken"}
    messages = only(session.user_line([result, blocks.image(b"x" * 30)]), tmp_path).messages
    assert said(messages, "user") == ["go"]
    (message,) = [m for m in messages if m.tool]
    assert [a.kind for a in message.attachments] == ["image"]


def test_a_call_whose_input_has_any_shape_is_kept(tmp_path: Path) -> None:
    for put in ('{"a":1}', "not json", [1], None, 2**70, {"deep": [[[]]]}):
        session = Transcript().user("go").run(Call("Edit", put, "ok"))
        (tool,) = tools(only(session, tmp_path).messages)
        assert tool.result == "ok"


@pytest.mark.parametrize(
    ("spelled", "added"),
    [
        (b"tw\\ud83do", "tw\N{REPLACEMENT CHARACTER}o"),  # half of an emoji
        (b"tw\xffo", "tw\N{REPLACEMENT CHARACTER}o"),
    ],
)
def test_an_edit_whose_structured_copy_is_spelled_wrongly_is_told_with_its_answer(
    spelled: bytes, added: str, tmp_path: Path
) -> None:
    session = Transcript().user("go").run(tool_calls.edit("/a.py", "one", "two", original="one\n"))
    path = session.write(tmp_path)
    whole = path.read_bytes()
    assert whole.count(b'"+two"') == 1
    path.write_bytes(whole.replace(b'"+two"', b'"+' + spelled + b'"'))
    told = tell(path)
    (tool,) = tools(told.sessions[0].messages)
    (edit,) = tool.edits
    assert (edit.hunks[0].added, tool.status, told.problems) == ((added,), "completed", ())


def test_each_run_of_changed_lines_is_told_at_its_place(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant(tools=[tool_calls.edit("/a.py", "x", "y", original="x\n")])
    lines = [
        " kept",
        "-one",
        "+two",
        "+more",
        " kept",
        "",
        "-last",
        "\\ No newline at end of file",
        "+end",
        7,
    ]
    patch = [{"oldStart": 4, "newStart": 6, "lines": lines}]
    session.result(
        session.tool_ids[-1], "done", tool_use_result={"filePath": "/a.py", "structuredPatch": patch}
    )
    (tool,) = tools(only(session, tmp_path).messages)
    assert [(h.removed, h.added, h.old_start, h.new_start) for h in tool.edits[0].hunks] == [
        (("one",), ("two", "more"), 5, 7),
        (("last",), ("end",), 8, 11),
    ]
