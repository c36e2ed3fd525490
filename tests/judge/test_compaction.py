"""Compaction: by the tool and by command."""

from tests.judge.blocks import text, use
from tests.judge.comparison import assert_agrees
from tests.judge.script import Reply
from tests.judge.stage import Stage

_FULL = {"input_tokens": 985_000, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}


def test_a_summary_by_command_is_no_prompt(stage: Stage) -> None:
    stage.ask("First prompt avocet")
    stage.ask("/compact keep the tea", resume=stage.last_session, is_prompt=False)
    stage.ask("After compaction prompt heron", resume=stage.last_session)
    assert_agrees(stage)


def test_a_summary_by_the_tool_is_no_prompt(stage: Stage) -> None:
    stage.script.on(
        "PROMPT-BIG",
        Reply([text("Big one."), use("Bash", command="echo one", description="x")], usage=_FULL),
        [text("Finished big.")],
    )
    first = stage.ask("PROMPT-BIG go")
    stage.ask("After the summary prompt ibis", resume=first)
    assert_agrees(stage)
