"""Tool results in any form, before or after their call, or without one."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from backscroll.model.message import ToolCall
from backscroll.model.store import Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.sources.claude_code.transcript.state import ReaderState
from backscroll.testing.claude_code import Call, Transcript, blocks, tool_calls
from tests.sources.claude_code.read_helpers import (
    calls_of,
    read_file,
    read_in_two_steps,
    read_session,
    texts_of,
)


def call_with_result(content: Any, root: Path) -> ToolCall:
    """Return a parsed call with this result."""
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("ls")])
    session.result(session.tool_ids[-1], content)
    (tool,) = calls_of(read_session(session, root).messages)
    return tool


def with_last_lines_swapped(session: Transcript) -> Transcript:
    """Swap the last two lines, so that a result precedes its call."""
    session.records[-2:] = reversed(session.records[-2:])
    return session


def final_state(path: Path) -> ReaderState:
    """Return the state in the checkpoint after reading a file."""
    *_, counts = ClaudeCode().read(Unit("claude-code", "", str(path)))
    assert counts.checkpoint is not None  # type: ignore[union-attr]
    return msgspec.msgpack.decode(counts.checkpoint.state, type=ReaderState)  # type: ignore[union-attr]


@pytest.mark.parametrize("has_structured_result", [True, False])
def test_an_edit_with_its_result_before_the_call_is_parsed(
    has_structured_result: bool, tmp_path: Path
) -> None:
    call = tool_calls.edit("/a.py", "one", "two", original="one\n", user_modified=has_structured_result)
    session = with_last_lines_swapped(Transcript().user("go").run(call))
    if not has_structured_result:
        session.change(lambda record: record.pop("toolUseResult", None) and None)
    path = session.write(tmp_path)
    (tool,) = calls_of(read_file(path).sessions[0].messages)
    (edit,) = tool.edits
    assert (edit.path, edit.added, edit.removed) == ("/a.py", 1, 1)
    assert (tool.status, tool.decision) == ("completed", "modified" if has_structured_result else "accepted")
    state = final_state(path)
    assert (state.pending, state.early, state.early_size) == ({}, {}, 0)


def test_a_subagent_with_its_result_before_the_call_is_linked(tmp_path: Path) -> None:
    session = Transcript(version="2.1.97").user("go").delegate("Look", "Seen.", layout="flat")
    content = read_file(with_last_lines_swapped(session).write(tmp_path))
    (agent,) = content.sessions[0].closing.agents
    assert (agent.prompt, agent.total_tokens, agent.tool_call_id) == ("Look", 5120, session.tool_ids[-1])
    assert [(link.agent_id, link.tool_call_id) for link in content.links] == [
        (agent.agent_id, agent.tool_call_id)
    ]


def test_a_result_can_be_read_by_an_earlier_reader_than_its_call(tmp_path: Path) -> None:
    path = with_last_lines_swapped(
        Transcript().user("go").run(tool_calls.edit("/a", "x", "y", original="x\n"))
    ).write(tmp_path)
    data = path.read_bytes()
    (tool,) = calls_of(read_in_two_steps(path, data.rindex(b"\n", 0, -1) + 1).sessions[0].messages)
    assert (tool.status, len(tool.edits)) == ("completed", 1)


def test_the_memory_for_results_without_calls_is_bounded(tmp_path: Path) -> None:
    session = Transcript().user("go")
    for number in range(40):
        session.result(f"toolu_{number}", "x" * 200_000)
    path = session.write(tmp_path)
    assert sum(early.size for early in final_state(path).early.values()) <= 4 * 1024 * 1024
    assert len(calls_of(read_file(path).sessions[0].messages)) == 40


@pytest.mark.parametrize(
    ("content", "text"),
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
def test_a_result_in_any_form_is_parsed(content: Any, text: str, tmp_path: Path) -> None:
    tool = call_with_result(content, tmp_path)
    assert (tool.result, tool.status) == (text, "completed")


@pytest.mark.parametrize("depth", [*range(200, 1100, 90), 5000, 50_000])
def test_a_deeply_nested_result_does_not_affect_other_messages(depth: int, tmp_path: Path) -> None:
    session = Transcript().user("before")
    deep = b"[" * depth + b"]" * depth
    session.raw(b'{"type":"tool_result","name":"x","sessionId":"s","output":' + deep + b"}").user("after")
    assert texts_of(read_file(session.write(tmp_path)).sessions[0].messages, "user") == ["before", "after"]


def test_a_web_search_result_contains_titles_and_urls(tmp_path: Path) -> None:
    call = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "tz"}}
    page = {
        "type": "web_search_result",
        "title": "Oslo",
        "url": "https://tz.example",
        "encrypted_content": "zz",
    }
    found = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [page]}
    session = Transcript().user("go").assistant(extra_blocks=[call, found])
    (tool,) = calls_of(read_session(session, tmp_path).messages)
    assert (tool.name, tool.result, tool.status) == ("web_search", "Oslo\nhttps://tz.example", "completed")


def test_a_failed_web_search_contains_the_error_code(tmp_path: Path) -> None:
    call = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "tz"}}
    error = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    answer = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": error}
    (tool,) = calls_of(
        read_session(Transcript().user("go").assistant(extra_blocks=[call, answer]), tmp_path).messages
    )
    assert (tool.result, tool.status) == ("max_uses_exceeded", "failed")


def test_a_result_without_a_call_id_is_kept(tmp_path: Path) -> None:
    session = Transcript().user("go").user_line([{"type": "tool_result", "content": "important output"}])
    (tool,) = calls_of(read_session(session, tmp_path).messages)
    assert tool.result == "important output"


def test_a_result_without_its_call_and_text_in_the_same_line_are_both_kept(tmp_path: Path) -> None:
    results = [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": f"output {n}"} for n in (1, 2)]
    session = Transcript().user("go").user_line([*results, blocks.text("and my own words")])
    messages = read_session(session, tmp_path).messages
    assert [tool.result for tool in calls_of(messages)] == ["output 1", "output 2"]
    assert texts_of(messages, "user") == ["go", "and my own words"]


def test_an_image_next_to_a_result_is_an_attachment_of_the_call(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant(tools=[tool_calls.bash("shoot")])
    result = {"type": "tool_result", "tool_use_id": session.tool_ids[-1], "content": "taken"}
    messages = read_session(session.user_line([result, blocks.image(b"x" * 30)]), tmp_path).messages
    assert texts_of(messages, "user") == ["go"]
    (message,) = [m for m in messages if m.tool]
    assert [a.kind for a in message.attachments] == ["image"]


def test_a_call_with_input_of_any_type_is_kept(tmp_path: Path) -> None:
    for input_ in ('{"a":1}', "not json", [1], None, 2**70, {"deep": [[[]]]}):
        session = Transcript().user("go").run(Call("Edit", input_, "ok"))
        (tool,) = calls_of(read_session(session, tmp_path).messages)
        assert tool.result == "ok"


@pytest.mark.parametrize(
    ("encoded", "added"),
    [
        (b"tw\\ud83do", "tw\N{REPLACEMENT CHARACTER}o"),  # half of an emoji
        (b"tw\xffo", "tw\N{REPLACEMENT CHARACTER}o"),
    ],
)
def test_an_edit_with_invalid_characters_in_its_structured_result_is_parsed(
    encoded: bytes, added: str, tmp_path: Path
) -> None:
    session = Transcript().user("go").run(tool_calls.edit("/a.py", "one", "two", original="one\n"))
    path = session.write(tmp_path)
    whole = path.read_bytes()
    assert whole.count(b'"+two"') == 1
    path.write_bytes(whole.replace(b'"+two"', b'"+' + encoded + b'"'))
    content = read_file(path)
    (tool,) = calls_of(content.sessions[0].messages)
    (edit,) = tool.edits
    assert (edit.hunks[0].added, tool.status, content.problems) == ((added,), "completed", ())


def test_each_run_of_changed_lines_is_a_hunk_with_line_numbers(tmp_path: Path) -> None:
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
    (tool,) = calls_of(read_session(session, tmp_path).messages)
    assert [(h.removed, h.added, h.old_start, h.new_start) for h in tool.edits[0].hunks] == [
        (("one",), ("two", "more"), 5, 7),
        (("last",), ("end",), 8, 11),
    ]


def test_files_changed_by_a_shell_command_are_edits_without_a_decision(tmp_path: Path) -> None:
    session = Transcript(version="2.1.269").user("go")
    edits = {"/w/x": (["a"], ["b"]), "/w/new": ([], ["1", "2"]), "/w/gone": (["c"], [])}
    session.run(tool_calls.bash("sed -i s/a/b/ x", edits=edits, changed=["/w/more"]))
    (tool,) = calls_of(read_session(session, tmp_path).messages)
    assert tool.decision is None
    assert [(edit.path, edit.kind, edit.added, edit.removed) for edit in tool.edits] == [
        ("/w/x", "update", 1, 1),
        ("/w/new", "create", 2, 0),
        ("/w/gone", "delete", 0, 1),
        ("/w/more", "update", 0, 0),
    ]


@pytest.mark.parametrize("diff", [1, [], {"files": 3}, {"files": [{"filePath": 4}, 5], "changedFiles": [6]}])
def test_odd_changes_of_a_shell_command_are_no_edits(diff: object, tmp_path: Path) -> None:
    session = Transcript(version="2.1.325").user("go").run(tool_calls.bash("ls"))
    session.records[-1]["toolUseResult"]["bashEditDiff"] = diff
    (tool,) = calls_of(read_session(session, tmp_path).messages)
    assert tool.edits == ()
    assert tool.status == "completed"
