"""Resumed, forked and named sessions."""

import uuid

import pytest

from tests.judge.blocks import text, use
from tests.judge.comparison import assert_agrees
from tests.judge.stage import Stage


def test_a_resumed_session_counts_each_message_once(stage: Stage) -> None:
    stage.script.on(
        "PROMPT-ORIGINAL",
        [text("Original answer."), use("Bash", command="echo original", description="x")],
        [text("Original end.")],
    )
    first = stage.ask("PROMPT-ORIGINAL go")
    second = stage.ask("Resumed prompt nightjar", resume=first)
    stage.ask("Resumed again plover", resume=second)
    assert_agrees(stage)


def test_continue_resumes_the_last_session(stage: Stage) -> None:
    stage.ask("First prompt avocet")
    stage.ask("Continued prompt merlin", "--continue")
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_a_fork_owns_only_what_was_said_after_the_fork(stage: Stage) -> None:
    for number in range(3):
        stage.script.on(
            f"PROMPT-FORK-{number}",
            [text(f"Answer {number}."), use("Bash", command="echo x", description="x")],
            [text(f"End {number}.")],
        )
        original = stage.ask(f"PROMPT-FORK-{number}")
        stage.ask(f"Forked prompt {number}", "--fork-session", resume=original)
        stage.ask(f"Prompt in the original {number}", resume=original)
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_a_session_with_a_chosen_id_and_name_keeps_both(stage: Stage) -> None:
    id_ = str(uuid.UUID(int=0x5E551011000040008000000000000ABC))
    name = ["--name", "Named by flag"] if stage.version >= "2.1.105" else []
    run = stage.ask("Own id prompt osprey", "--session-id", id_, *name)
    assert run.session_id == id_
    assert_agrees(stage)
