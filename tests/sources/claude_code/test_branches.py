"""Active messages: those on the branch that the tool shows, for trees of any shape."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backscroll.model.store import Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.sources.claude_code.transcript.branches import CAVEAT, COMMAND, DIALOG, META, SIDECHAIN, Tree
from backscroll.testing.claude_code import Transcript, blocks, repeat_lines, tool_calls
from tests.oracle.fold import fold
from tests.sources.claude_code.read_helpers import calls_of, read_session, texts_of


def retried_session() -> Transcript:
    """Build a session with a prompt that was answered twice. The first answer is abandoned."""
    session = Transcript(version="2.1.50").user("one")
    prompt = session.leaf
    session.assistant("old reply").branch_from(prompt).assistant("new reply")
    return session.user("two").assistant("answer two")


def test_a_slash_command_at_the_end_does_not_reactivate_an_abandoned_answer(tmp_path: Path) -> None:
    messages = read_session(retried_session().command("exit", stdout="bye"), tmp_path).messages
    assert texts_of(messages, "assistant") == ["new reply", "answer two"]
    assert [m.kind for m in messages if m.role == "system" and m.is_active] == [
        "caveat",
        "command",
        "command output",
    ]


def test_an_injected_line_at_the_end_does_not_reactivate_an_abandoned_answer(tmp_path: Path) -> None:
    messages = read_session(retried_session().meta("Continue from where you left off."), tmp_path).messages
    assert texts_of(messages, "assistant") == ["new reply", "answer two"]
    assert texts_of(messages, "system") == ["Continue from where you left off."]


def test_a_command_below_an_older_line_abandons_nothing(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("one").assistant("first")
    stale = session.leaf
    session.user("two").assistant("second").branch_from(stale).command("exit", stdout="bye")
    messages = read_session(session, tmp_path).messages
    assert all(m.is_active for m in messages)


@pytest.mark.parametrize("kind", ["agent_progress", "hook_progress"])
def test_progress_that_is_written_late_hides_no_answer(kind: str, tmp_path: Path) -> None:
    """2.1.77 writes the progress of a call after the answer, and links the next message to it."""
    session = Transcript(version="2.1.77").user("one").assistant(tools=[tool_calls.bash("ls", "a")])
    call, started_at = session.leaf, str(session.records[-1]["timestamp"])
    session.result(session.tool_ids[-1], "a").assistant("answer one").branch_from(call)
    for _ in range(2):
        session.progress(kind, parent_tool_id=session.tool_ids[-1], agentId="a1b2c3d")
        session.records[-1]["timestamp"] = started_at
    session.user("two").assistant("answer two")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "assistant") == ["answer one", "answer two"]
    assert all(m.is_active for m in messages)


def test_progress_in_time_does_not_reactivate_an_abandoned_answer(tmp_path: Path) -> None:
    session = Transcript(version="2.1.77").user("one")
    prompt = session.leaf
    session.assistant("old reply").branch_from(prompt)
    session.progress("agent_progress", parent_tool_id="toolu_7", agentId="a1b2c3d").assistant("new reply")
    assert texts_of(read_session(session, tmp_path).messages, "assistant") == ["new reply"]


def test_a_command_during_a_turn_does_not_hide_the_answer(tmp_path: Path) -> None:
    """2.1.105 links a change of the model to the prompt of the turn in which it happens."""
    session = Transcript(version="2.1.105").user("one")
    prompt = session.leaf
    session.run(tool_calls.bash("ls", "a")).assistant("answer one").branch_from(prompt)
    session.command("model", "haiku", stdout="Set model").user("two").assistant("answer two")
    messages = read_session(session, tmp_path).messages
    assert all(message.is_active for message in messages)


def test_a_command_after_a_rewind_does_not_restore_the_abandoned_turn(tmp_path: Path) -> None:
    session = Transcript(version="2.1.105").user("one").assistant("answer one")
    answer = session.leaf
    session.user("two").assistant("answer two").branch_from(answer)
    session.command("model", "haiku", stdout="Set model").user("three").assistant("answer three")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["one", "three"]
    assert texts_of(messages, "assistant") == ["answer one", "answer three"]


def test_all_shell_commands_below_one_caveat_are_active(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").meta("<local-command-caveat>x</local-command-caveat>")
    caveat = session.leaf
    for command in ("ls", "pwd", "git status"):
        session.branch_from(caveat).bash_mode(command, "out")
    session.user("go on").assistant("ok")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "system")[1:] == ["! ls", "out", "! pwd", "out", "! git status", "out"]
    assert all(m.is_active for m in messages)


def test_messages_between_commands_below_one_caveat_are_a_sequence(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").meta("<local-command-caveat>x</local-command-caveat>")
    caveat = session.leaf
    session.bash_mode("ls", "a").user("first").assistant("one")
    session.branch_from(caveat).bash_mode("pwd", "b").user("second").assistant("two")
    assert texts_of(read_session(session, tmp_path).messages, "user") == ["first", "second"]


def test_rewinding_to_before_a_command_abandons_the_prompt_after_it(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("one").assistant("first")
    before = session.leaf
    session.command("model", "opus", stdout="set").user("wrong").assistant("wrong answer")
    session.branch_from(before).user("right").assistant("right answer")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["one", "right"]
    assert texts_of(messages, "assistant") == ["first", "right answer"]


def test_rewinding_to_before_a_command_abandons_the_command_and_its_answer(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("one").assistant("first")
    before = session.leaf
    session.prompt_command("review").assistant("a bad review")
    session.branch_from(before).prompt_command("audit").assistant("a good one")
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["one", "/audit"]
    assert texts_of(messages, "assistant") == ["first", "a good one"]


def test_all_lines_in_a_cycle_of_parents_are_active_in_file_order(tmp_path: Path) -> None:
    session = Transcript().user("one").assistant("two").user("three").assistant("four")
    session.records[0]["parentUuid"] = session.last_uuid
    messages = read_session(session, tmp_path).messages
    assert [m.content for m in messages if m.is_active] == ["one", "two", "three", "four"]


def test_all_lines_around_a_cycle_are_active(tmp_path: Path) -> None:
    session = Transcript().user("one").assistant("two").user("three").assistant("four").user("five")
    session.records[1]["parentUuid"] = session.records[2]["uuid"]
    session.records[3]["parentUuid"] = session.records[3]["uuid"]
    assert all(m.is_active for m in read_session(session, tmp_path).messages)


def test_a_first_line_with_a_parent_after_a_compaction_abandons_nothing(tmp_path: Path) -> None:
    session = Transcript().user("before").assistant("yes").compact().user("after").assistant("indeed")
    session.records[0]["parentUuid"] = session.last_uuid
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["before", "after"]
    assert texts_of(messages, "assistant") == ["yes", "indeed"]


def test_a_line_before_its_parent_is_active(tmp_path: Path) -> None:
    session = Transcript().user("question").assistant("answer")
    session.records.reverse()
    assert all(m.is_active for m in read_session(session, tmp_path).messages)


def test_a_line_rewritten_with_fewer_blocks_deactivates_the_others(tmp_path: Path) -> None:
    session = (
        Transcript(version="1.0.3")
        .user("go")
        .assistant("A", extra_blocks=[blocks.text("B")], on_one_line=True)
    )
    repeated = dict(session.records[-1])
    repeated["message"] = {**repeated["message"], "content": [blocks.text("C")]}
    session.line(repeated)
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "assistant") == ["C"]
    assert texts_of(messages, "assistant", active=False) == ["C", "B"]


def test_a_line_rewritten_with_fewer_and_then_all_blocks_is_complete(tmp_path: Path) -> None:
    session = (
        Transcript(version="1.0.3")
        .user("go")
        .assistant("A", extra_blocks=[blocks.text("B")], on_one_line=True)
    )
    whole = dict(session.records[-1])
    session.line({**whole, "message": {**whole["message"], "content": [blocks.text("A")]}}).line(whole)
    assert texts_of(read_session(session, tmp_path).messages, "assistant") == ["A", "B"]


def test_a_line_rewritten_without_content_is_inactive(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("A")
    repeated = dict(session.records[-1])
    session.line({**repeated, "message": {**repeated["message"], "content": []}})
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "assistant") == []
    assert texts_of(messages, "assistant", active=False) == ["A"]


def test_a_response_can_contain_the_same_sentence_twice(tmp_path: Path) -> None:
    session = Transcript(version="2.1.97").user("go")
    session.assistant("Let me check.", tools=[tool_calls.bash("ls")], message_id="msg_1")
    session.result(session.tool_ids[-1], "a").assistant("Let me check.", message_id="msg_1")
    assert texts_of(read_session(session, tmp_path).messages, "assistant") == [
        "Let me check.",
        "Let me check.",
    ]


def test_a_prompt_repeated_on_another_branch_is_active_and_emitted_once(tmp_path: Path) -> None:
    session = Transcript(version="2.0.20").user("go")
    session.branch_from(None).user("before")
    root = session.leaf
    session.user("the prompt").assistant("the answer")
    session.leaf = root
    repeat_lines(session, 2)
    messages = read_session(session, tmp_path).messages
    assert texts_of(messages, "user") == ["go", "before", "the prompt"]
    assert texts_of(messages, "assistant") == ["the answer"]


def test_a_superseded_line_of_a_subagent_is_inactive_with_all_its_messages(tmp_path: Path) -> None:
    session = Transcript().user("go")
    agent = session.subagent("look", layout="flat", agent_id="a1")
    agent.assistant("bad", extra_blocks=[blocks.text("worse")], on_one_line=True)
    superseded_id = agent.last_uuid
    agent.assistant("good", supersedesUuids=[superseded_id])
    session.write(tmp_path)
    unit = Unit("claude-code", "", str(agent.path(tmp_path)), kind="agent")
    (parsed,) = fold(ClaudeCode().read(unit)).sessions
    assert texts_of(parsed.messages, "assistant") == ["good"]
    assert texts_of(parsed.messages, "assistant", active=False) == ["bad", "worse", "good"]


def test_results_before_their_calls_are_active_with_them(tmp_path: Path) -> None:
    session = (
        Transcript().user("go").run(tool_calls.bash("a", "1"), tool_calls.bash("b", "2")).assistant("done")
    )
    records = session.records
    records[1], records[3] = records[3], records[1]
    messages = read_session(session, tmp_path).messages
    # Each message is at the position of its call or result, whichever is first.
    assert [tool.result for tool in calls_of(messages)] == ["1", "2"]
    assert all(m.is_active for m in messages)


_FLAGS = st.sampled_from(
    [0, DIALOG, DIALOG, DIALOG | META, DIALOG | CAVEAT, DIALOG | COMMAND, DIALOG | SIDECHAIN, SIDECHAIN]
)
_LINES = st.lists(
    st.tuples(
        st.none() | st.integers(0, 9),  # parent: an earlier line, a later line, itself or none
        _FLAGS,
        st.none() | st.sampled_from("ab"),  # response
        st.integers(0, 2),  # number of messages
    ),
    max_size=8,
)


def _inactive_ids(lines: list[tuple[int | None, int, str | None, int]], *, with_fork: bool) -> set[str]:
    tree = Tree()
    for index, (parent, flags, response, count) in enumerate(lines):
        node = tree.add(f"line {index}", None if parent is None else f"line {parent}", flags, response)
        tree.set_message_count(node, count)
    if with_fork:
        tree.add("root", None, DIALOG, None)
        tree.add("first child", "root", DIALOG, None)
        tree.add("second child", "root", DIALOG, None)
    return set(tree.inactive_message_ids())


@given(lines=_LINES)
def test_a_fork_in_another_tree_does_not_change_which_messages_are_inactive(
    lines: list[tuple[int | None, int, str | None, int]],
) -> None:
    assert _inactive_ids(lines, with_fork=False) == _inactive_ids(lines, with_fork=True)
