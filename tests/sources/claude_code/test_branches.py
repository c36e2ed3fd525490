"""What is on the branch that the tool shows, whatever the tree looks like."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from backscroll.model import Unit
from backscroll.sources.claude_code import ClaudeCode
from backscroll.sources.claude_code.transcript.branches import CAVEAT, COMMAND, META, SIDE, TALK, Tree
from backscroll.testing.claude_code import Transcript, blocks, repeat_lines, tool_calls
from tests.oracle.fold import fold
from tests.sources.claude_code.reading import only, said, tools


def retried() -> Transcript:
    """A prompt whose first answer was thrown away for a second."""
    session = Transcript(version="2.1.50").user("one")
    prompt = session.leaf
    session.assistant("old reply").branch_from(prompt).assistant("new reply")
    return session.user("two").assistant("answer two")


def test_a_slash_command_at_the_end_does_not_bring_back_a_thrown_away_answer(tmp_path: Path) -> None:
    messages = only(retried().command("exit", stdout="bye"), tmp_path).messages
    assert said(messages, "assistant") == ["new reply", "answer two"]
    assert [m.kind for m in messages if m.role == "system" and m.is_active] == [
        "caveat",
        "command",
        "command output",
    ]


def test_an_injected_line_at_the_end_does_not_either(tmp_path: Path) -> None:
    messages = only(retried().meta("Continue from where you left off."), tmp_path).messages
    assert said(messages, "assistant") == ["new reply", "answer two"]
    assert said(messages, "system") == ["Continue from where you left off."]


def test_a_command_that_hangs_on_an_old_line_abandons_nothing(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("one").assistant("first")
    stale = session.leaf
    session.user("two").assistant("second").branch_from(stale).command("exit", stdout="bye")
    messages = only(session, tmp_path).messages
    assert all(m.is_active for m in messages)


def test_all_shell_commands_below_one_caveat_are_active(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").meta("<local-command-caveat>x</local-command-caveat>")
    caveat = session.leaf
    for command in ("ls", "pwd", "git status"):
        session.branch_from(caveat).bash_mode(command, "out")
    session.user("go on").assistant("ok")
    messages = only(session, tmp_path).messages
    assert said(messages, "system")[1:] == ["! ls", "out", "! pwd", "out", "! git status", "out"]
    assert all(m.is_active for m in messages)


def test_talk_between_commands_below_one_caveat_is_a_sequence(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").meta("<local-command-caveat>x</local-command-caveat>")
    caveat = session.leaf
    session.bash_mode("ls", "a").user("first").assistant("one")
    session.branch_from(caveat).bash_mode("pwd", "b").user("second").assistant("two")
    assert said(only(session, tmp_path).messages, "user") == ["first", "second"]


def test_a_prompt_rewound_to_before_a_command_is_left_behind(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("one").assistant("first")
    before = session.leaf
    session.command("model", "opus", stdout="set").user("wrong").assistant("wrong answer")
    session.branch_from(before).user("right").assistant("right answer")
    messages = only(session, tmp_path).messages
    assert said(messages, "user") == ["one", "right"]
    assert said(messages, "assistant") == ["first", "right answer"]


def test_a_command_that_was_answered_and_run_again_is_left_with_its_answer(tmp_path: Path) -> None:
    session = Transcript(version="2.1.50").user("one").assistant("first")
    before = session.leaf
    session.user_line("<command-name>/review</command-name>").assistant("a bad review")
    session.branch_from(before).user_line("<command-name>/audit</command-name>").assistant("a good one")
    messages = only(session, tmp_path).messages
    assert said(messages, "system") == ["/audit"]
    assert said(messages, "assistant") == ["first", "a good one"]


def test_in_a_circle_of_parents_everything_stays_active_in_file_order(tmp_path: Path) -> None:
    session = Transcript().user("one").assistant("two").user("three").assistant("four")
    session.records[0]["parentUuid"] = session.last_uuid
    messages = only(session, tmp_path).messages
    assert [m.content for m in messages if m.is_active] == ["one", "two", "three", "four"]


def test_a_circle_in_the_middle_harms_nothing(tmp_path: Path) -> None:
    session = Transcript().user("one").assistant("two").user("three").assistant("four").user("five")
    session.records[1]["parentUuid"] = session.records[2]["uuid"]
    session.records[3]["parentUuid"] = session.records[3]["uuid"]
    assert all(m.is_active for m in only(session, tmp_path).messages)


def test_a_first_line_that_names_a_line_after_a_compaction_leaves_nothing_behind(tmp_path: Path) -> None:
    session = Transcript().user("before").assistant("yes").compact().user("after").assistant("indeed")
    session.records[0]["parentUuid"] = session.last_uuid
    messages = only(session, tmp_path).messages
    assert said(messages, "user") == ["before", "after"]
    assert said(messages, "assistant") == ["yes", "indeed"]


def test_a_line_that_stands_before_its_parent_is_active(tmp_path: Path) -> None:
    session = Transcript().user("question").assistant("answer")
    session.records.reverse()
    assert all(m.is_active for m in only(session, tmp_path).messages)


def test_a_line_written_again_with_fewer_blocks_leaves_nothing_active_over(tmp_path: Path) -> None:
    session = (
        Transcript(version="1.0.3")
        .user("go")
        .assistant("A", extra_blocks=[blocks.text("B")], on_one_line=True)
    )
    again = dict(session.records[-1])
    again["message"] = {**again["message"], "content": [blocks.text("C")]}
    session.line(again)
    messages = only(session, tmp_path).messages
    assert said(messages, "assistant") == ["C"]
    assert said(messages, "assistant", active=False) == ["C", "B"]


def test_a_line_that_shrank_and_grew_again_is_whole(tmp_path: Path) -> None:
    session = (
        Transcript(version="1.0.3")
        .user("go")
        .assistant("A", extra_blocks=[blocks.text("B")], on_one_line=True)
    )
    whole = dict(session.records[-1])
    session.line({**whole, "message": {**whole["message"], "content": [blocks.text("A")]}}).line(whole)
    assert said(only(session, tmp_path).messages, "assistant") == ["A", "B"]


def test_a_line_written_again_with_nothing_in_it_is_no_longer_active(tmp_path: Path) -> None:
    session = Transcript().user("go").assistant("A")
    again = dict(session.records[-1])
    session.line({**again, "message": {**again["message"], "content": []}})
    messages = only(session, tmp_path).messages
    assert said(messages, "assistant") == []
    assert said(messages, "assistant", active=False) == ["A"]


def test_a_response_may_say_the_same_sentence_twice(tmp_path: Path) -> None:
    session = Transcript(version="2.1.97").user("go")
    session.assistant("Let me check.", tools=[tool_calls.bash("ls")], message_id="msg_1")
    session.result(session.tool_ids[-1], "a").assistant("Let me check.", message_id="msg_1")
    assert said(only(session, tmp_path).messages, "assistant") == ["Let me check.", "Let me check."]


def test_a_prompt_written_again_beside_the_first_is_active_and_told_once(tmp_path: Path) -> None:
    session = Transcript(version="2.0.20").user("go")
    session.branch_from(None).user("before")
    root = session.leaf
    session.user("the prompt").assistant("the answer")
    session.leaf = root
    repeat_lines(session, 2)
    messages = only(session, tmp_path).messages
    assert said(messages, "user") == ["go", "before", "the prompt"]
    assert said(messages, "assistant") == ["the answer"]


def test_a_superseded_line_of_a_subagent_is_inactive_with_all_its_messages(tmp_path: Path) -> None:
    session = Transcript().user("go")
    agent = session.subagent("look", layout="flat", agent_id="a1")
    agent.assistant("bad", extra_blocks=[blocks.text("worse")], on_one_line=True)
    dead = agent.last_uuid
    agent.assistant("good", supersedesUuids=[dead])
    session.write(tmp_path)
    unit = Unit("claude-code", "", str(agent.path(tmp_path)), kind="agent")
    (reading,) = fold(ClaudeCode().read(unit)).sessions
    assert said(reading.messages, "assistant") == ["good"]
    assert said(reading.messages, "assistant", active=False) == ["bad", "worse", "good"]


def test_results_that_lie_before_their_calls_are_active_with_them(tmp_path: Path) -> None:
    session = (
        Transcript().user("go").run(tool_calls.bash("a", "1"), tool_calls.bash("b", "2")).assistant("done")
    )
    records = session.records
    records[1], records[3] = records[3], records[1]
    messages = only(session, tmp_path).messages
    assert [tool.result for tool in tools(messages)] == ["1", "2"]  # each where the first of the two stands
    assert all(m.is_active for m in messages)


_FLAGS = st.sampled_from([0, TALK, TALK, TALK | META, TALK | CAVEAT, TALK | COMMAND, TALK | SIDE, SIDE])
_LINES = st.lists(
    st.tuples(
        st.none() | st.integers(0, 9),  # the line it hangs on: one before it, after it, itself or nowhere
        _FLAGS,
        st.none() | st.sampled_from("ab"),  # the response it is part of
        st.integers(0, 2),  # how many messages it gave
    ),
    max_size=8,
)


def _left(lines: list[tuple[int | None, int, str | None, int]], *, is_forked: bool) -> set[str]:
    tree = Tree()
    for number, (above, flags, response, told) in enumerate(lines):
        node = tree.add(f"line {number}", None if above is None else f"line {above}", flags, response)
        tree.set_message_count(node, told)
    if is_forked:
        tree.add("elsewhere", None, TALK, None)
        tree.add("below", "elsewhere", TALK, None)
        tree.add("beside", "elsewhere", TALK, None)
    return set(tree.abandoned())


@given(lines=_LINES)
def test_a_fork_elsewhere_leaves_nothing_more_and_nothing_less_behind(
    lines: list[tuple[int | None, int, str | None, int]],
) -> None:
    assert _left(lines, is_forked=False) == _left(lines, is_forked=True)
