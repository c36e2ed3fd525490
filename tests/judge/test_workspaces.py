"""Sessions that move to another folder."""

import pytest

from tests.judge.blocks import text, use
from tests.judge.comparison import assert_agrees
from tests.judge.stage import Stage


@pytest.mark.parametrize("name", ["a" * 100 + "/" + "b" * 100, "cafe\u0301", "dots. and spaces_"])
def test_the_folder_of_a_session_is_known_by_its_project_key(stage: Stage, name: str) -> None:
    if not name.isascii() and "2.1.105" <= stage.version < "2.1.212":
        pytest.skip("this version cannot enter a folder with a decomposed name")
    folder = stage.folder / name
    folder.mkdir(parents=True)
    stage.trust(folder)
    run = stage.ask("Prompt in another folder wren", folder=folder)
    with stage.history() as history:
        assert history.find(run.id).workspace_path == str(folder)
        assert history.resume.plan(run.id).command.folder == str(folder)
    assert_agrees(stage)


@pytest.mark.since("2.1.105")
def test_a_session_that_starts_in_a_worktree_belongs_to_it(stage: Stage) -> None:
    stage.init_repository("main")
    stage.git("worktree", "add", "-q", "../tree", "-b", "side")
    stage.trust(stage.folder / "tree")
    inside = stage.ask("Worktree prompt uguisu", folder=stage.folder / "tree")
    flagged = stage.ask("Worktree flag prompt vireo", "--worktree", "flagged")
    with stage.history() as history:
        # 2.1.105 stores the branch of the folder in which it was started, unless it is slow.
        branch = history.find(flagged.id).git_branch
        assert branch in ("main", "worktree-flagged")
        stage.branches = {inside.id: "side", flagged.id: str(branch)}
        assert history.find(inside.id).workspace_path == str(stage.folder / "tree")
        assert str(history.find(flagged.id).workspace_path).endswith("/.claude/worktrees/flagged")
    assert_agrees(stage)


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
