"""Permission dialogs: rejected, denied and stopped calls, and text that the user typed into a dialog."""

from pathlib import Path
from typing import Any

import pytest

from backscroll.testing.claude_code import Transcript, blocks, tool_calls
from backscroll.testing.claude_code.tool_calls import Call
from tests.sources.claude_code.read_helpers import (
    calls_of,
    read_file,
    read_in_two_steps,
    read_session,
    texts_of,
)

VERSIONS = ["1.0.69", "2.0.76", "2.1.105", "2.1.212", "2.1.325"]
_EDIT = tool_calls.edit("/a.py", "x", "y", original="x\n")


def session_with_call(version: str, call: Call = _EDIT, **options: Any) -> Transcript:
    return Transcript(version=version, **options).user("go").assistant(tools=[call])


def outcome_of(session: Transcript, root: Path) -> tuple[str | None, str | None, int]:
    """Return the status, the decision and the number of edits of the only call."""
    (tool,) = calls_of(read_session(session, root).messages)
    return tool.status, tool.decision, len(tool.edits)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("feedback", [None, "use another name please"])
def test_a_call_that_the_user_refuses_is_rejected(version: str, feedback: str | None, tmp_path: Path) -> None:
    session = session_with_call(version)
    session.reject(session.tool_ids[-1], feedback=feedback)
    if feedback is None:
        session.interrupt(for_tool=True)
    assert outcome_of(session, tmp_path) == ("cancelled", "rejected", 1)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "text",
    [
        "Claude requested permissions to use Bash, but you haven't granted it yet.",
        "Claude requested permissions to write to /a.py, but you haven't granted it yet.",
        "Permission to use Bash with command rm -rf a\nrm -rf b has been denied.",
        "Permission to edit /a.py has been denied.",
        "This command requires approval",
        "This Bash command contains multiple operations that require approval",
        "Current permission mode (Plan) requires approval for this Bash command",
        "touch in '/x' was blocked. For security, Claude Code may only create or modify files in the allowed"
        " working directories for this session: '/y'.",
        "touch in '/x' needs approval. The path is inside the working directories for this session ('/').",
        "Exit plan mode?",
        "Answer questions?",
        "Bash operation blocked by hook:\n- [check.sh]: no",
        "PreToolUse:Bash hook error: [check.sh]: no\n",
    ],
)
def test_a_call_that_is_denied_without_a_dialog_has_no_decision(
    version: str, text: str, tmp_path: Path
) -> None:
    session = session_with_call(version, entrypoint="sdk-cli")
    session.deny(session.tool_ids[-1], text).assistant("I was denied.")
    assert outcome_of(session, tmp_path) == ("cancelled", None, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_denial_in_a_terminal_has_no_decision(version: str, tmp_path: Path) -> None:
    session = session_with_call(version)
    session.deny(session.tool_ids[-1], "Permission to use Edit has been denied.", kind="permission-rule")
    assert outcome_of(session, tmp_path) == ("cancelled", None, 0)


@pytest.mark.parametrize(
    ("source", "decision"),
    [("user_reject", "rejected"), ("user_abort", "rejected"), ("config", None), ("hook", None), (7, None)],
)
def test_the_source_of_the_permission_decides(source: Any, decision: str | None, tmp_path: Path) -> None:
    session = session_with_call("2.1.325")
    session.deny(session.tool_ids[-1], "The user doesn't want to proceed with this tool use.", source=source)
    assert outcome_of(session, tmp_path)[:2] == ("cancelled", decision)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("entrypoint", ["cli", "sdk-cli"])
def test_a_running_call_that_the_user_stops_has_no_decision(
    version: str, entrypoint: str, tmp_path: Path
) -> None:
    session = session_with_call(version, entrypoint=entrypoint)
    session.stop(session.tool_ids[-1]).user("next")
    assert outcome_of(session, tmp_path) == ("cancelled", None, 0)


def test_a_stopped_call_is_recognized_by_a_later_reader(tmp_path: Path) -> None:
    session = session_with_call("2.1.212")
    path = session.stop(session.tool_ids[-1]).write(tmp_path)
    data = path.read_bytes()
    (tool,) = calls_of(read_in_two_steps(path, data.rindex(b"\n", 0, -1) + 1).sessions[0].messages)
    assert (tool.status, tool.decision, tool.edits) == ("cancelled", None, ())


def test_a_stopped_call_does_not_change_an_earlier_rejection(tmp_path: Path) -> None:
    session = session_with_call("2.1.212")
    session.reject(session.tool_ids[-1], feedback="not that file").assistant(tools=[_EDIT])
    session.stop(session.tool_ids[-1])
    tools = calls_of(read_session(session, tmp_path).messages)
    assert [tool.decision for tool in tools] == ["rejected", None]


def test_a_stopped_call_is_recognized_by_the_correction_in_its_result(tmp_path: Path) -> None:
    session = session_with_call("2.1.325", entrypoint="claude-vscode")
    session.reject(session.tool_ids[-1])
    record = session.records[-1]
    assert isinstance(record, dict)
    block = record["message"]["content"][0]
    block["content"] += " Correction to the text above: this call was stopped while running, not refused"
    assert outcome_of(session, tmp_path) == ("cancelled", None, 0)


@pytest.mark.parametrize(
    "text",
    [
        "Exit code 1\nThis command requires approval",
        "Error: the branch requires approval",
        "Exit code 2\n[Request interrupted by user for tool use] is in the log",
    ],
)
def test_a_failed_call_that_quotes_a_denial_is_failed(text: str, tmp_path: Path) -> None:
    session = session_with_call("2.1.105")
    session.result(session.tool_ids[-1], text, is_error=True)
    assert outcome_of(session, tmp_path) == ("failed", None, 0)


def test_a_rejected_call_with_its_result_first_is_rejected(tmp_path: Path) -> None:
    session = session_with_call("2.1.105")
    session.reject(session.tool_ids[-1])
    session.records[-2:] = reversed(session.records[-2:])
    assert outcome_of(session, tmp_path)[:2] == ("cancelled", "rejected")


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_feedback_with_a_refusal_is_also_a_user_message(version: str, tmp_path: Path) -> None:
    session = session_with_call(version)
    session.reject(session.tool_ids[-1], feedback="use another\nname please").assistant("I will.")
    messages = read_session(session, tmp_path).messages
    assert [(m.role, m.kind, m.content) for m in messages if m.role != "tool"] == [
        ("user", None, "go"),
        ("user", "feedback", "use another\nname please"),
        ("assistant", None, "I will."),
    ]
    assert "the user said:\nuse another" in (calls_of(messages)[0].result or "")


def test_a_note_of_the_tool_after_feedback_is_not_part_of_it(tmp_path: Path) -> None:
    session = session_with_call("2.1.105")
    note = "\n\nNote: The user's next message may contain a correction or preference. Pay close attention."
    session.reject(session.tool_ids[-1], feedback=f"use tabs{note}")
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["go", "use tabs"]


def test_a_button_of_the_dialog_is_not_feedback(tmp_path: Path) -> None:
    session = session_with_call("2.1.105")
    session.reject(
        session.tool_ids[-1], feedback="The user wants to clarify these questions.\n    This means …"
    )
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["go"]


def test_text_that_was_typed_to_allow_a_call_is_feedback(tmp_path: Path) -> None:
    session = session_with_call("2.1.105", tool_calls.bash("touch a"))
    result = {"type": "tool_result", "tool_use_id": session.tool_ids[-1], "content": ""}
    messages = read_session(session.user_line([result, blocks.text("and list them")]), tmp_path).messages
    assert [(m.kind, m.content) for m in messages if m.role == "user"] == [
        (None, "go"),
        ("feedback", "and list them"),
    ]


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_typed_answer_to_a_question_is_also_a_user_message(version: str, tmp_path: Path) -> None:
    call = tool_calls.ask("Which tea?", ["Green", "Black"], "my own oolong answer")
    messages = read_session(Transcript(version=version).user("go").run(call), tmp_path).messages
    assert [(m.kind, m.content) for m in messages if m.role == "user"] == [
        (None, "go"),
        ("answer", "my own oolong answer"),
    ]


@pytest.mark.parametrize(
    ("answers", "annotations", "typed"),
    [
        ({"Which tea?": "Green"}, {}, None),
        ({"Which tea?": "Green, Black"}, {}, None),
        ({"Which tea?": "Green, oolong, or mint"}, {}, "oolong, or mint"),
        ({"Which tea?": "Green"}, {"Which tea?": {"notes": "but weak"}}, "but weak"),
        ({"Which tea?": "oolong"}, {"Which tea?": {"notes": "oolong"}}, "oolong"),
        ({"Which tea?": "oolong", "Sugar?": "a bit"}, None, "oolong\na bit"),
        ({"Which tea?": ["x"]}, [], None),
        ("none", {}, None),
    ],
)
def test_only_typed_parts_of_answers_are_a_user_message(
    answers: Any, annotations: Any, typed: str | None, tmp_path: Path
) -> None:
    call = tool_calls.ask("Which tea?", ["Green", "Black"], "Green")
    session = Transcript().user("go").run(call)
    record = session.records[-1]
    assert isinstance(record, dict)
    record["toolUseResult"] |= {"answers": answers, "annotations": annotations}
    texts = texts_of(read_session(session, tmp_path).messages, "user")
    assert texts == (["go"] if typed is None else ["go", typed])


def test_a_repeated_exchange_has_its_feedback_once(tmp_path: Path) -> None:
    session = session_with_call("2.0.30")
    session.reject(session.tool_ids[-1], feedback="use tabs")
    for record in session.records[-2:]:
        assert isinstance(record, dict)
        session.line({**record, "uuid": session.new_uuid()})
    content = read_file(session.write(tmp_path))
    assert texts_of(content.sessions[0].messages, "user") == ["go", "use tabs"]
