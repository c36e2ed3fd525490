"""Installed hooks: the tool behaves as before, and the archive has what they recorded once."""

import json
import shutil
from pathlib import Path

import pytest

from backscroll import History
from backscroll.config import Machine, NamedRoot
from tests.judge.blocks import text, use
from tests.judge.comparison import assert_agrees
from tests.judge.stage import Stage

pytestmark = pytest.mark.since("1.0.69")  # the first version with hooks here


def _install(stage: Stage) -> Path:
    """Install the hooks for the archive of the stage, and return the settings file."""
    home = stage.folder / "archive"
    machine = Machine(stage.home, stage.environ())
    with History(home=home, roots=[NamedRoot("claude-code", stage.config)], machine=machine) as history:
        history.hooks.plan_install("claude-code").apply()
    home.mkdir(exist_ok=True)
    return stage.config / "settings.json"


def _spooled(stage: Stage) -> list[str]:
    """Return the names of the recorded events."""
    lines = [
        json.loads(line)
        for file in sorted((stage.folder / "archive" / "spool").glob("*.jsonl"))
        for line in file.read_bytes().splitlines()
        if line
    ]
    return [line["payload"]["hook_event_name"] for line in lines]


def test_hooks_record_a_turn_and_change_nothing_in_it(stage: Stage) -> None:
    file = str(stage.write("a.txt", "one\ntwo\n"))
    stage.settings(permissions={"deny": ["Bash(rm:*)"]})
    _install(stage)
    stage.script.on(
        "PROMPT-HOOKS",
        [use("Read", file_path=file)],
        [use("Edit", file_path=file, old_string="two", new_string="three")],
        [text("Edited.")],
    )
    run = stage.ask("PROMPT-HOOKS")
    assert run.exit_code == 0, run.errors
    events = _spooled(stage)
    assert events[0] in ("SessionStart", "UserPromptSubmit")
    warm_up = {"SubagentStop"}  # 2.0.76 starts subagents by itself
    assert set(events) - warm_up == {"PostToolUse", "SessionStart", "Stop", "UserPromptSubmit"}
    assert events.count("PostToolUse") == 2
    assert "backscroll" not in json.dumps([exchange.request for exchange in run.exchanges])
    assert_agrees(stage)
    with stage.history() as history:
        assert list((stage.folder / "archive" / "spool").iterdir()) == []
        assert [session.id for session in history.list_sessions().data] == [run.id]


def test_deny_rules_stay_in_force_with_hooks(stage: Stage) -> None:
    file = stage.write("keep.txt", "keep\n")
    stage.settings(permissions={"deny": ["Bash(rm:*)"]})
    _install(stage)
    stage.script.on("PROMPT-DENY", [use("Bash", command="rm keep.txt", description="x")], [text("No.")])
    stage.ask("PROMPT-DENY", allow="Read")
    assert file.exists()
    assert "UserPromptSubmit" in _spooled(stage)


def test_the_git_hook_links_a_commit_to_the_session_that_made_it(stage: Stage) -> None:
    stage.init_repository()
    home = stage.folder / "archive"
    with History(home=home, roots=[NamedRoot("claude-code", stage.config)]) as history:
        history.hooks.apply_git_change(history.hooks.plan_git_install(stage.workspace))
    commit = "git add a.txt && git -c user.name=J -c user.email=j@example.invalid commit -q -m 'Add a file'"
    stage.script.on(
        "PROMPT-COMMIT",
        [use("Write", file_path=str(stage.workspace / "a.txt"), content="one\n")],
        [use("Bash", command=commit, description="commit")],
        [text("Committed.")],
    )
    run = stage.ask("PROMPT-COMMIT")
    with stage.history() as history:
        history.hooks.process_commits()
        newest = history.list_commits(stage.workspace).data[0]
        assert (newest.subject, newest.sessions[0].session_id) == ("Add a file", run.id)
        details = [evidence.detail for evidence in newest.sessions[0].evidence]
        assert history.journal.read("today", stage.workspace) is not None
    if stage.version >= "2.1.325":  # older versions do not name the session to the commands that they run
        assert any("git hook" in detail for detail in details)


def test_a_deleted_program_does_not_block_the_user(stage: Stage) -> None:
    settings = _install(stage)
    settings.write_text(settings.read_text().replace("backscroll_hook.py", "gone/backscroll_hook.py"))
    stage.script.on("PROMPT-GONE", [text("Still here.")])
    run = stage.ask("PROMPT-GONE")
    assert run.exit_code == 0, run.errors
    assert "Still here." in run.output
    assert "hook" not in run.errors.lower()


def test_a_session_without_a_transcript_is_kept_by_hooks(stage: Stage) -> None:
    _install(stage)
    stage.script.on("PROMPT-LOST", [text("Answer.")])
    run = stage.ask("PROMPT-LOST")
    shutil.rmtree(stage.config / "projects")
    with stage.history() as history:
        messages = history.get_session(run.id).messages
        assert messages[0].content == "PROMPT-LOST"


def test_uninstalling_restores_the_settings(stage: Stage) -> None:
    stage.settings(permissions={"deny": ["Bash(rm:*)"]})
    before = (stage.config / "settings.json").read_bytes()
    settings = _install(stage)
    stage.script.on("PROMPT-ONCE", [text("Yes.")])
    stage.ask("PROMPT-ONCE")
    with stage.history() as history:
        history.hooks.plan_uninstall("claude-code").apply()
    assert settings.read_bytes() == before
