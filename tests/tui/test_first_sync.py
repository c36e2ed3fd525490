"""A long sync runs in a background process. The UI shows its progress and the sessions that are ready."""

from pathlib import Path

import pytest

from backscroll.archive.archive import Archive
from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from tests.cli.syncing_process import syncing_process
from tests.tui.ui_driver import UiDriver, run_ui


def write_session(root: Path, seed: int, prompt: str) -> None:
    Transcript(seed=seed).user(prompt).assistant("answer").write(root)


def test_the_first_sync_runs_in_a_background_process(tmp_path: Path) -> None:
    home, roots = tmp_path / "home", [NamedRoot("claude-code", tmp_path / "claude")]
    write_session(roots[0].path, 1, "Why is the ferry late?")

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("1 session ")
        await ui.wait_for_text("Why is the ferry late?")
        await ui.wait_until(lambda: ui.app.is_watching, "the sync to end")
        assert ui.app.sync_status == ""
        write_session(roots[0].path, 2, "Paint the quay")
        await ui.wait_for_text("2 sessions")

    run_ui(home, script, roots=roots, auto_sync=True)
    assert "complete; units read: 1" in (home / "sync.log").read_text()


def test_progress_and_results_follow_the_sync_of_another_process(tmp_path: Path) -> None:
    home, roots = tmp_path / "home", [NamedRoot("claude-code", tmp_path / "claude")]
    write_session(roots[0].path, 1, "Why is the ferry late?")
    with History(home=home, roots=roots) as history:
        history.sync()
        archive = Archive(history.archive_path)
    archive.sync_state.mark_incomplete()

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("syncing 30 %, about ")
        await ui.wait_for_text("Why is the ferry late?")
        await ui.press("slash", *"lighthouse")
        await ui.wait_for_text("No matches so far. The sync is not complete.")
        archive.sync_state.mark_complete()
        archive.close()
        process.kill()
        await ui.wait_for_text("No matches.")
        assert "syncing" not in ui.text

    with syncing_process(archive.path) as process:
        run_ui(home, script, roots=roots, auto_sync=True)


def test_a_sync_that_another_command_stops_is_reported(tmp_path: Path) -> None:
    home, roots = tmp_path / "home", [NamedRoot("claude-code", tmp_path / "claude")]
    with History(home=home, roots=roots) as history:
        assert not history.is_complete

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("syncing 30 %")
        with History(home=home, roots=roots) as history:
            assert history.background_sync.stop()
        await ui.wait_for_text("sync stopped")

    with syncing_process(home / "archive.db"):
        run_ui(home, script, roots=roots, auto_sync=True)


def test_unreadable_files_are_named_after_the_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, roots = tmp_path / "home", [NamedRoot("claude-code", tmp_path / "claude")]
    write_session(roots[0].path, 1, "Why is the ferry late?")
    monkeypatch.setattr(History, "unreadable_paths", lambda _: ["/locked/a.jsonl", "/locked/b.jsonl"])

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("Cannot read /locked/a.jsonl and 1 more")

    run_ui(home, script, roots=roots, auto_sync=True)
