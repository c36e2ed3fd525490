"""Sessions that move to another folder."""

import pytest

from tests.judge.blocks import text, use
from tests.judge.comparison import assert_agrees
from tests.judge.stage import Stage


@pytest.mark.since("2.1.105")
def test_a_session_that_enters_a_worktree_stays_one_session(stage: Stage) -> None:
    stage.init_repository("main")
    stage.script.on(
        "PROMPT-WORKTREE",
        [use("EnterWorktree", name="tea")],
        [use("Bash", command="pwd", description="x")],
        [use("ExitWorktree", action="keep")],
        [text("Back from the worktree.")],
    )
    first = stage.ask("PROMPT-WORKTREE one")
    stage.ask("Second from the original folder", resume=first)
    assert_agrees(stage)
