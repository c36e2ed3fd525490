"""Scenarios in a terminal: dialogs, queued prompts, rewinding, forks."""

import shutil
import time

import pytest

from backscroll.model.session import Filter
from tests.judge.blocks import text, use
from tests.judge.comparison import assert_agrees
from tests.judge.script import Reply
from tests.judge.stage import Stage
from tests.judge.terminal import terminal

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]
_NAP = "touch napping; while [ ! -e go ]; do sleep 0.1; done"


@pytest.mark.since("1.0.69")
def test_prompts_typed_in_a_terminal_are_read_once(stage: Stage) -> None:
    stage.write(
        ".claude/commands/brew.md", "---\ndescription: Brew\n---\nBREW-BODY the tea $ARGUMENTS now.\n"
    )
    stage.script.on("BREW-BODY", [text("Brewing answer.")])
    with terminal(stage) as screen:
        screen.ask("First typed prompt avocet")
        screen.ask("/brew oolong", "Brewing answer")
    assert_agrees(stage)


@pytest.mark.since("1.0.69")
def test_decisions_in_dialogs_are_the_users(stage: Stage) -> None:
    file = stage.write("a.txt", "alpha\nbeta\n")
    edit = use("Edit", file_path=str(file), old_string="beta", new_string="BETA")
    touch = use("Bash", command="touch rejected-file", description="x")
    stage.script.on("INT-EDIT", [use("Read", file_path=str(file))], [edit], [text("Edited it.")])
    stage.script.on("INT-REJECT", [text("May I?"), touch])
    stage.expect(touch, status="cancelled", decision="rejected")
    with terminal(stage, "--permission-mode", "default") as screen:
        screen.open_dialog("INT-EDIT please")
        screen.keys("Enter")
        screen.wait_for("Edited it")
        screen.open_dialog("INT-REJECT please")
        screen.keys("Escape")
        screen.wait_for("Interrupted", "rejected", "doing")
        screen.ask("After the rejection egret")
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_words_typed_into_dialogs_are_the_users(stage: Stage) -> None:
    write = use("Write", file_path=str(stage.workspace / "w.txt"), content="x\n")
    options = [{"label": "Green", "description": "g"}, {"label": "Black", "description": "b"}]
    question = {"question": "Which tea?", "header": "Tea", "multiSelect": False, "options": options}
    stage.script.on("INT-FEED", [write], [text("Feedback heard.")])
    stage.script.on("INT-ASK", [use("AskUserQuestion", questions=[question])], [text("Answer heard.")])
    stage.expect(write, status="cancelled", decision="rejected")
    with terminal(stage, "--permission-mode", "default") as screen:
        screen.open_dialog("INT-FEED please")
        screen.keys("Down", "Down", "Tab")
        screen.type("use another name please")
        screen.wait_for("Feedback heard")
        screen.type("INT-ASK me")
        screen.wait_for("Which tea")
        time.sleep(1.0)
        screen.keys("Down", "Down")
        screen.type("my own oolong answer")
        time.sleep(2.0)
        if "Answer heard" not in screen.screen():  # some versions ask for a confirmation
            screen.keys("Enter")
        screen.wait_for("Answer heard")
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_a_prompt_queued_in_a_terminal_is_shown_once(stage: Stage) -> None:
    nap = use("Bash", command=_NAP, description="nap")
    stage.script.on("INT-NAP", [text("Napping."), nap], [text("Nap over.")])
    with terminal(stage, "--permission-mode", "default", "--allowedTools", "Bash") as screen:
        screen.type("INT-NAP please")
        stage.wait_for_file("napping")
        screen.type("Queued while napping bittern")
        stage.write("go", "")
        screen.wait_for("Nap over")
        screen.ask("Last prompt coot")
    assert_agrees(stage)


@pytest.mark.since("1.0.69")
def test_a_queued_prompt_that_is_taken_back_is_no_prompt(stage: Stage) -> None:
    nap = use("Bash", command=_NAP, description="nap")
    stage.script.on("INT-NAP", [text("Napping."), nap], [text("Nap over.")])
    with terminal(stage, "--permission-mode", "default", "--allowedTools", "Bash") as screen:
        screen.type("INT-NAP please")
        stage.wait_for_file("napping")
        screen.type("Queued while napping bittern", is_prompt=False)
        screen.keys("Up")  # takes it back into the input
        time.sleep(1.0)
        screen.keys("C-u", "C-u")
        stage.write("go", "")
        screen.wait_for("Nap over")
        screen.ask("Last prompt coot")
    assert_agrees(stage)


@pytest.mark.since("2.1.105")
def test_a_question_beside_the_conversation_is_not_part_of_it(stage: Stage) -> None:
    stage.script.on("what kettle", [text("A copper one.")])
    with terminal(stage) as screen:
        screen.ask("First typed prompt avocet")
        screen.type("/btw what kettle is it?", is_prompt=False)
        screen.wait_for("A copper one", "Title by the model")
        screen.keys("Escape")
        screen.ask("Second typed prompt egret")
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_a_tool_stopped_in_a_terminal_has_no_decision(stage: Stage) -> None:
    nap = use("Bash", command=_NAP, description="nap")
    stage.script.on("INT-STOP", [text("Napping."), nap])
    stage.expect(nap, status="cancelled", decision=None)
    with terminal(stage, "--permission-mode", "default", "--allowedTools", "Bash") as screen:
        screen.type("INT-STOP please")
        stage.wait_for_file("napping")
        screen.keys("Escape")
        screen.wait_for("Interrupted", "interrupted")
        screen.ask("After the stop egret")
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_an_answer_stopped_in_a_terminal_keeps_its_prompt(stage: Stage) -> None:
    slow = Reply([text("Slow words " * 200)], chunk_chars=20, chunk_delay_seconds=0.1)
    stage.script.on("INT-SLOW", slow)
    stage.script.on("After the stop", [text("Understood.")])  # sent in one message with the first prompt
    with terminal(stage) as screen:
        screen.type("INT-SLOW please")
        stage.script.wait_for("INT-SLOW")  # before 2.1.212 the screen shows complete answers only
        time.sleep(2.0)
        screen.keys("Escape")
        screen.wait_for("Interrupted", "interrupted")
        screen.ask("After the stop egret")
    for exchange in stage.runs[-1].exchanges:
        if exchange.blocks == slow.blocks:
            stage.expect_as_written(exchange)
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_a_fork_in_a_terminal_owns_only_what_was_said_in_it(stage: Stage) -> None:
    with terminal(stage) as screen:
        screen.ask("Typed in the original kiwi")
    with terminal(stage, "--resume", stage.runs[0].id, "--fork-session") as screen:
        screen.ask("Typed in the fork linnet")
    assert_agrees(stage)


@pytest.mark.since("2.1.105")
def test_a_renamed_session_has_its_name(stage: Stage) -> None:
    with terminal(stage) as screen:
        screen.ask("First typed prompt avocet")
        screen.type("/rename Kettle session title", is_prompt=False)
        screen.wait_for("Kettle session title")
    stage.titles[stage.runs[0].id] = "Kettle session title"
    assert_agrees(stage)


@pytest.mark.since("2.1.10")
@pytest.mark.before("2.1.85")
def test_a_subagent_without_its_file_is_read_from_progress_lines(stage: Stage) -> None:
    stage.environment["CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION"] = "false"  # it would be another subagent
    file = stage.write("a.txt", "alpha\n")
    start = use(
        stage.agent_tool, description="Count tea", prompt="SUB-TEA count", subagent_type="general-purpose"
    )
    echo = use("Bash", command="echo seven", description="count")
    stage.script.on("INT-AGENT", [start], [text("Agent is back.")])
    stage.script.on_agent(
        "SUB-TEA", [text("Looking."), use("Read", file_path=str(file))], [echo], [text("Seven teas.")]
    )
    with terminal(stage, "--permission-mode", "default", "--allowedTools", "Bash,Read,Task,Agent") as screen:
        screen.ask("INT-AGENT please", "Agent is back")
    assert_agrees(stage)
    for agent_file in stage.config.glob("projects/**/agent-*.jsonl"):
        agent_file.unlink()
    shutil.rmtree(stage.folder / "archive", ignore_errors=True)
    with stage.history() as history:
        (agent,) = [
            summary for summary in history.all_sessions(Filter(with_subagents=True)) if summary.parent_ref
        ]
        messages = history.get_session(agent.ref).messages
    assert agent.completeness == "partial"
    assert [message.content for message in messages if message.role == "user"] == ["SUB-TEA count"]
    assert [message.tool.name for message in messages if message.tool] == ["Read", "Bash"]
    assert messages[-1].tool is not None
    assert "seven" in (messages[-1].tool.result or "")
