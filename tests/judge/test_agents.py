"""Subagents and the calls that start them."""

import json
import re
from typing import Any

import pytest

from tests.judge.blocks import Block, text, think, use
from tests.judge.comparison import assert_agrees
from tests.judge.script import Reply
from tests.judge.stage import Stage

_WAIT = "python3 -c 'import time; time.sleep({})'; echo waited"


def _start(stage: Stage, prompt: str, kind: str = "general-purpose", **params: Any) -> Block:
    return use(stage.agent_tool, description=prompt, prompt=prompt, subagent_type=kind, **params)


def _wait(seconds: int) -> Block:
    return use("Bash", command=_WAIT.format(seconds), description="wait")


def test_parallel_nested_and_background_agents_are_linked_to_their_calls(stage: Stage) -> None:
    stage.write("a.txt", "alpha\n")
    stage.script.on(
        "PROMPT-AGENT",
        [text("Two agents."), _start(stage, "SUB-SPOON count"), _start(stage, "SUB-FORK count")],
        [_start(stage, "SUB-NEST go deeper")],
        [_start(stage, "SUB-BACK go", run_in_background=True)],
        [_wait(3)],
        [text("All agents are back.")],
    )
    read = use("Read", file_path=str(stage.workspace / "a.txt"))
    stage.script.on_agent(
        "SUB-SPOON", [think("Spoons."), text("Looking."), read], [text("There are 7 spoons.")]
    )
    stage.script.on_agent("SUB-FORK", [text("There are 9 forks.")])
    stage.script.on_agent("SUB-NEST", [_start(stage, "SUB-DEEP go")], [text("The deep one says 42.")])
    stage.script.on_agent("SUB-DEEP", [text("Deep answer 42.")])
    stage.script.on_agent("SUB-BACK", Reply([text("Background answer.")], delay_seconds=1))
    stage.ask("PROMPT-AGENT please")
    assert_agrees(stage)


def test_agents_of_the_project_have_their_own_model(stage: Stage) -> None:
    stage.write(
        ".claude/agents/taster.md",
        "---\nname: taster\ndescription: Tastes tea\nmodel: haiku\ntools: Read, Bash\n---\nYou taste tea.\n",
    )
    stage.script.on(
        "PROMPT-KINDS",
        [_start(stage, "SUB-TASTE it", "taster"), _start(stage, "SUB-NOSUCH go", "nosuch")],
        [_wait(2)],
        [text("Tasting over.")],
    )
    stage.script.on_agent("SUB-TASTE", [text("It tastes fine.")])
    stage.script.on_agent("SUB-NOSUCH", [text("Versions without kinds start it.")])
    stage.ask("PROMPT-KINDS go")
    assert_agrees(stage)


@pytest.mark.since("2.0.76")
def test_a_session_that_runs_as_an_agent_is_an_ordinary_session(stage: Stage) -> None:
    stage.write(
        ".claude/agents/taster.md",
        "---\nname: taster\ndescription: Tastes tea\ntools: Read, Bash\n---\nYou taste tea.\n",
    )
    echo = use("Bash", command="echo sip", description="sip")
    stage.script.on("PROMPT-AS", [text("Tasting."), echo], [text("It tastes fine.")])
    first = stage.ask("PROMPT-AS go", "--agent", "taster")
    stage.ask("After the tasting egret", resume=first)
    assert_agrees(stage)


@pytest.mark.since("2.1.63")
def test_a_message_to_an_agent_continues_its_conversation(stage: Stage) -> None:
    def again(request: dict[str, Any]) -> list[Block]:
        found = re.findall(r"agentId: (\w+)", json.dumps(request["messages"]))
        return [use("SendMessage", to=found[-1], message="SUB-MORE and saucers?", summary="saucers")]

    stage.script.on(
        "PROMPT-SEND", [text("Start."), _start(stage, "SUB-CUP count")], again, [_wait(4)], [text("Over.")]
    )
    stage.script.on_agent("SUB-CUP", [text("There are 3 cups.")])
    stage.ask("PROMPT-SEND go")
    assert_agrees(stage)
