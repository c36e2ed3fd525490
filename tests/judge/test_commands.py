"""Slash commands, skills and hooks."""

from typing import Any

import pytest

from tests.judge.blocks import text, use
from tests.judge.comparison import assert_agrees
from tests.judge.stage import Stage

_BREW = "---\ndescription: Brew tea\nargument-hint: kind\n---\nBREW-BODY the tea of kind $ARGUMENTS now.\n"
_STEEP = (
    "---\nname: steep\ndescription: How to steep tea\n---\nSTEEP-BODY wait four minutes. Args: $ARGUMENTS\n"
)


def test_a_command_of_the_project_is_a_prompt(stage: Stage) -> None:
    stage.write(".claude/commands/brew.md", _BREW)
    stage.script.on("BREW-BODY", [text("Brewing answer.")])
    first = stage.ask("/brew oolong strong")
    stage.ask("Next prompt heron", resume=first)
    assert_agrees(stage)


def test_commands_of_the_tool_are_no_prompts(stage: Stage) -> None:
    stage.ask("First prompt avocet")
    stage.ask("/cost", resume=stage.last_session, is_prompt=False)
    if stage.version >= "2.0.0":
        stage.ask("/context", resume=stage.last_session, is_prompt=False)
    stage.ask("Next prompt heron", resume=stage.last_session)
    assert_agrees(stage)


def test_an_unknown_command_is_a_prompt_if_the_model_answers_it(stage: Stage) -> None:
    stage.ask("First prompt avocet")
    run = stage.ask("/nosuchcommand foo", resume=stage.last_session)
    if all(exchange.is_own for exchange in run.exchanges):
        run.prompts.clear()
    stage.ask("Next prompt heron", resume=stage.last_session)
    assert_agrees(stage)


def test_a_skill_that_the_model_uses_is_a_call(stage: Stage) -> None:
    stage.write(".claude/skills/steep/SKILL.md", _STEEP)
    stage.script.on(
        "PROMPT-SKILL",
        [text("Using the skill."), use("Skill", skill="steep", args="sencha")],
        [text("Skill used.")],
    )
    stage.ask("PROMPT-SKILL please")
    assert_agrees(stage)


@pytest.mark.since("2.1.105")
def test_a_skill_that_the_user_names_is_a_prompt(stage: Stage) -> None:
    stage.write(".claude/skills/steep/SKILL.md", _STEEP)
    stage.script.on("STEEP-BODY", [text("Steeping answer.")])
    first = stage.ask("First prompt avocet")
    stage.ask("/steep sencha", resume=first)
    assert_agrees(stage)


@pytest.mark.since("1.0.69")
def test_output_of_hooks_is_no_prompt(stage: Stage) -> None:
    def hook(command: str, **values: str) -> list[dict[str, Any]]:
        return [{**values, "hooks": [{"type": "command", "command": command}]}]

    stopped = stage.home / "stopped"
    stop = f"[ -e {stopped} ] || {{ touch {stopped}; echo 'STOP-FEEDBACK do one more thing' >&2; exit 2; }}"
    context = (
        '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"POSTCTX after bash"}}'
    )
    block = "if grep -q blockme; then echo 'HOOKBLOCK not allowed by hook' >&2; exit 2; fi"
    stage.settings(
        hooks={
            "UserPromptSubmit": hook("echo HOOKCTX remember the kettle"),
            "SessionStart": hook("echo STARTCTX session start context"),
            "PreToolUse": hook(block, matcher="Bash"),
            "PostToolUse": hook(f"echo '{context}'", matcher="Bash"),
            "Stop": hook(stop),
        }
    )
    blocked = use("Bash", command="echo blockme", description="x")
    stage.script.on(
        "PROMPT-HOOK",
        [blocked],
        [use("Bash", command="echo fine", description="x")],
        [text("Hooks finished.")],
    )
    stage.script.on("STOP-FEEDBACK", [text("One more thing done.")])
    stage.expect(blocked, status="cancelled", decision=None)
    stage.ask("PROMPT-HOOK go")
    assert_agrees(stage)
