"""Scenarios in a terminal that change which session or branch is active, or that pick a session."""

import shutil
import time
from collections.abc import Sequence

import pytest

from backscroll.model.message import Message
from tests.judge.blocks import text
from tests.judge.comparison import assert_agrees
from tests.judge.safekeeping import Safekeeping
from tests.judge.stage import Stage
from tests.judge.terminal import terminal

pytestmark = [
    pytest.mark.terminal,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]


def _prompts(messages: Sequence[Message], *, is_active: bool = True) -> list[str]:
    own = [each for each in messages if each.role == "user" and each.copied_from is None]
    return [each.content for each in own if each.is_active == is_active]


@pytest.mark.since("1.0.69")
def test_a_session_continued_in_a_terminal_counts_each_message_once(stage: Stage) -> None:
    with terminal(stage) as screen:
        screen.ask("First typed prompt avocet")
    with terminal(stage, "--continue") as screen:
        screen.ask("Continued prompt heron")
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_a_rewound_prompt_is_kept_and_not_active(stage: Stage) -> None:
    stage.script.on("REWIND-ME", [text("Rewound answer.")])
    with terminal(stage) as screen:
        screen.ask("First typed prompt avocet")
        screen.ask("REWIND-ME prompt dunlin", "Rewound answer")
        screen.keys("Escape", "Escape")
        time.sleep(2.0)
        screen.keys("Up", "Enter")
        time.sleep(1.5)
        screen.keys("Enter")
        time.sleep(2.0)
        screen.keys("C-u", "C-k")  # the rewound prompt is in the input again
        screen.ask("After the rewind egret")
    exchanges = [each for each in stage.runs[-1].exchanges if not each.is_own]
    with stage.history() as history:
        messages = history.get_session(stage.runs[-1].id).messages
        total = history.statistics.report().total
    assert _prompts(messages) == ["First typed prompt avocet", "After the rewind egret"]
    assert _prompts(messages, is_active=False) == ["REWIND-ME prompt dunlin"]
    assert total.prompts == 2
    assert total.tokens is not None
    assert total.tokens.total == sum(sum(each.usage.values()) for each in exchanges)


@pytest.mark.since("1.0.69")
def test_a_cleared_session_and_the_next_one_are_two(stage: Stage) -> None:
    with terminal(stage) as screen:
        screen.ask("First typed prompt avocet")
        screen.type("/clear", is_prompt=False)
        time.sleep(3.0)
        screen.ask("After the clear gannet")
    with stage.history() as history:
        found = [history.get_session(each.ref).messages for each in history.all_sessions()]
    assert sorted(map(_prompts, found)) == [["After the clear gannet"], ["First typed prompt avocet"]]
    assert all(each.content or each.tool for messages in found for each in messages)


@pytest.mark.since("2.1.282")
def test_a_branch_owns_only_what_was_said_in_it(stage: Stage) -> None:
    with terminal(stage) as screen:
        screen.ask("First typed prompt avocet")
        screen.type("/branch my branch", is_prompt=False)
        time.sleep(4.0)
        screen.type("In the branch finch")
        stage.script.wait_for("In the branch finch")
        time.sleep(2.0)
    with stage.history() as history:
        found = [history.get_session(each.ref).messages for each in history.all_sessions()]
        assert history.statistics.report().total.prompts == 2
    assert sorted(map(_prompts, found)) == [["First typed prompt avocet"], ["In the branch finch"]]


@pytest.mark.since("1.0.69")
def test_a_moved_session_is_in_the_list_of_the_new_folder(stage: Stage) -> None:
    with terminal(stage) as screen:
        screen.ask("First typed prompt avocet")
    target = stage.folder / "elsewhere"
    target.mkdir()
    stage.trust(target)
    Safekeeping(stage).run("migrate", stage.runs[0].id, "--to", str(target), "--mode", "move", "--yes")
    stage.workspace = target
    with terminal(stage, "--resume") as screen:
        screen.wait_for("First typed prompt avocet", "Title by the model")
        screen.keys("Enter")
        time.sleep(4.0)
        screen.ask("After the move heron")
    sent = stage.runs[-1].exchanges[-1].request["messages"]
    assert "First typed prompt avocet" in str(sent)
    assert_agrees(stage)
