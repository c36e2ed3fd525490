"""Tests of actions on a session, live updates, and unusual content."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.widgets import Input

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript, tool_calls
from backscroll.tui.app import Backscroll
from backscroll.tui.dialogs import ExportDialog
from tests.tui.ui_driver import UiDriver, run_ui

SESSION = "5e551011-0000-4000-8000-0000000000a1"
OTHER = "5e551011-0000-4000-8000-0000000000b2"


def write_session(root: Path, id_: str, *prompts: str) -> None:
    transcript = Transcript(id_, seed=1, cwd="/home/zoe/ferry")
    for prompt in prompts:
        transcript.user(prompt)
        transcript.assistant(f"Answer to: {prompt}")
    transcript.write(root)


def make_archive(tmp_path: Path, *prompts: str) -> tuple[Path, list[NamedRoot]]:
    """Return the home and the roots of an archive with one session."""
    root, home = tmp_path / "claude", tmp_path / "home"
    write_session(root, SESSION, *prompts)
    roots = [NamedRoot("claude-code", root)]
    with History(home=home, roots=roots) as history:
        history.sync()
    return home, roots


def test_s_toggles_the_star_of_a_session(demo_home_copy: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("s")
        await ui.wait_for_text("▌★ A page about the year")
        await ui.press("asterisk")
        await ui.wait_for_text("1 of 46 sessions · ★")
        await ui.press("s")
        await ui.wait_for_text("No session matches the filter.")

    run_ui(demo_home_copy, script)


def test_tags_can_be_added_and_removed(demo_home_copy: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("t")
        await ui.wait_for_text("Tags of this session:")
        await ui.type_text("Later #year")
        await ui.press("enter")
        await ui.wait_for_text("#later #year")
        await ui.press("t")
        await ui.wait_for_text("Tags of this session:")
        for _ in range(len(" year")):
            await ui.press("backspace")
        await ui.press("enter")
        await ui.wait_until_gone("#year")

    run_ui(demo_home_copy, script)
    with History(home=demo_home_copy) as history:
        assert history.annotations.tags() == {"later": 1}


async def export_to(ui: UiDriver, path: Path) -> None:
    await ui.press("e")
    await ui.wait_for_text("Export to file:")
    await ui.press("ctrl+u")
    await ui.type_text(str(path))
    await ui.press("enter")


def test_an_export_replaces_an_existing_file_only_after_a_second_enter(
    demo_home: Path, tmp_path: Path
) -> None:
    target = tmp_path / "year.html"
    target.write_text("mine", encoding="utf-8")

    async def script(ui: UiDriver) -> None:
        await export_to(ui, target)
        await ui.wait_for_text("Press Enter again to replace it.")
        assert "--force" not in ui.text
        assert isinstance(ui.app.focused, Input)
        assert ui.app.focused.value == str(target)
        assert target.read_text(encoding="utf-8") == "mine"
        await ui.press("enter")
        await ui.wait_for_text("Wrote")
        await ui.wait_until_gone("Export to file:")

    run_ui(demo_home, script)
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_another_path_cancels_the_offer_to_replace_a_file(demo_home: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "year.md", tmp_path / "year.md2.md"
    for target in (first, second):
        target.write_text("mine", encoding="utf-8")

    async def script(ui: UiDriver) -> None:
        await export_to(ui, first)
        await ui.wait_for_text("Press Enter again to replace it.")
        dialog = ui.app.screen
        assert isinstance(dialog, ExportDialog)
        assert dialog._existing_path == str(first)
        await ui.type_text("2.md")
        await ui.press("enter")
        await ui.wait_until(lambda: dialog._existing_path == str(second), "an offer for the other path")

    run_ui(demo_home, script)
    assert {target.read_text(encoding="utf-8") for target in (first, second)} == {"mine"}


@pytest.mark.parametrize(
    ("name", "reason"), [("missing/year.md", "does not exist."), ("year.doc", "Unknown format.")]
)
def test_an_export_that_fails_keeps_the_dialog_open(
    demo_home: Path, tmp_path: Path, name: str, reason: str
) -> None:
    async def script(ui: UiDriver) -> None:
        await export_to(ui, tmp_path / name)
        await ui.wait_for_text(reason)
        assert "Export to file:" in ui.text
        await ui.press("ctrl+u")
        await ui.type_text(str(tmp_path / "year.md"))
        await ui.press("enter")
        await ui.wait_for_text("Wrote")

    run_ui(demo_home, script)
    assert (tmp_path / "year.md").exists()


def test_y_copies_the_ref_in_the_list_and_the_message_in_the_transcript(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("y")
        assert ui.app.clipboard.startswith("claude-code:")
        await ui.wait_for_text("I want a page about my year")
        await ui.press("tab", "right_square_bracket", "y")
        assert ui.app.clipboard.startswith("I want a page about my year")

    run_ui(demo_home, script)


def test_resuming_without_the_folder_of_the_session_shows_a_notice_with_its_path(tmp_path: Path) -> None:
    home, roots = make_archive(tmp_path, "Why is the ferry late?")

    async def script(ui: UiDriver) -> None:
        await ui.press("r")
        await ui.wait_for_text("/home/zoe/ferry")

    run_ui(home, script, roots=roots)


def make_resumable_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[NamedRoot]]:
    """Return an archive with a session that can be resumed, and a PATH with no program but `bin/claude`."""
    root, home, workspace = tmp_path / "claude", tmp_path / "home", tmp_path / "ferry"
    workspace.mkdir()
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    Transcript(SESSION, cwd=str(workspace)).user("Why is the ferry late?").assistant("Fog.").write(root)
    roots = [NamedRoot("claude-code", root)]
    with History(home=home, roots=roots) as history:
        history.sync()
    return home, roots


def record_suspensions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace `App.suspend`. Like the original, it does not resume the UI after an exception."""
    events: list[str] = []

    @contextmanager
    def suspend(self: Backscroll) -> Iterator[None]:
        events.append("suspend")
        yield
        events.append("resume")

    monkeypatch.setattr(Backscroll, "suspend", suspend)
    return events


def test_resuming_with_a_missing_program_shows_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, roots = make_resumable_archive(tmp_path, monkeypatch)
    events = record_suspensions(monkeypatch)

    async def script(ui: UiDriver) -> None:
        await ui.press("r")
        await ui.wait_for_text("claude is not installed or not on")
        await ui.wait_for_text("npm install -g")
        assert events == []

    run_ui(home, script, roots=roots)


def test_a_program_that_cannot_be_started_leaves_the_ui_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, roots = make_resumable_archive(tmp_path, monkeypatch)
    events = record_suspensions(monkeypatch)
    program = tmp_path / "bin" / "claude"
    program.write_bytes(b"\x00")
    program.chmod(0o755)

    async def script(ui: UiDriver) -> None:
        await ui.press("r")
        await ui.wait_for_text("Cannot run claude: Exec format error.")
        assert events == ["suspend", "resume"]
        await ui.press("s")
        await ui.wait_for_text("▌★ Why is the ferry late?")

    run_ui(home, script, roots=roots)


@pytest.mark.parametrize(
    ("last_command", "notice"),
    [("exit 3", "claude exited with code 3."), ("kill -9 $$", "claude was ended by signal 9.")],
)
def test_a_resumed_program_that_fails_shows_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last_command: str, notice: str
) -> None:
    home, roots = make_resumable_archive(tmp_path, monkeypatch)
    record_suspensions(monkeypatch)
    program = tmp_path / "bin" / "claude"
    program.write_text(f"#!/bin/sh\n{last_command}\n")
    program.chmod(0o755)

    async def script(ui: UiDriver) -> None:
        await ui.press("r")
        await ui.wait_for_text(notice)

    run_ui(home, script, roots=roots)


def test_ctrl_c_in_the_resumed_program_returns_to_the_ui(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, roots = make_resumable_archive(tmp_path, monkeypatch)
    events = record_suspensions(monkeypatch)
    program = tmp_path / "bin" / "claude"
    # Ctrl+C sends the signal to all processes of the terminal, this one included.
    program.write_text(f"#!{sys.executable}\nimport os, signal\nos.kill({os.getpid()}, signal.SIGINT)\n")
    program.chmod(0o755)

    async def script(ui: UiDriver) -> None:
        await ui.press("r")
        await ui.wait_until(lambda: events == ["suspend", "resume"], "the program to end")
        await ui.press("s")
        await ui.wait_for_text("▌★ Why is the ferry late?")

    run_ui(home, script, roots=roots)


def test_a_session_deleted_from_the_archive_shows_a_notice_and_leaves_the_list(tmp_path: Path) -> None:
    home, roots = make_archive(tmp_path, "Why is the ferry late?")
    write_session(roots[0].path, OTHER, "Paint the quay")
    with History(home=home, roots=roots) as history:
        history.sync()

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("2 sessions")
        selected = ui.app.sessions.selected_ref
        other = next(summary.ref for summary in ui.app.list_model.summaries if summary.ref != selected)
        with History(home=home, roots=roots) as history:
            history.archive_admin.forget(other)
        await ui.press("j")
        await ui.wait_for_text("Backscroll · 1 session ")
        await ui.wait_for_text("Answer to: ")  # the transcript of the remaining session
        await ui.wait_for_text("This session is no longer in the archive.")

    run_ui(home, script, roots=roots)


@pytest.mark.parametrize("search_query", ["", "ferry"])
@pytest.mark.parametrize("keys", [("s",), ("e", "enter"), ("r",)])
def test_an_action_on_a_deleted_session_reloads_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], search_query: str
) -> None:
    monkeypatch.chdir(tmp_path)
    home, roots = make_archive(tmp_path, "Why is the ferry late?")

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("1 found" if search_query else "1 session")
        await ui.wait_for_text("Answer to: Why is the ferry late?")
        with History(home=home, roots=roots) as history:
            history.archive_admin.forget(ui.app.sessions.selected_ref or "")
        await ui.press(*keys)
        await ui.wait_for_text("This session is no longer in the archive.")
        await ui.wait_until(lambda: ui.app.sessions.entry_count == 0, "an empty list")
        assert "Export to file:" not in ui.text

    run_ui(home, script, roots=roots, search_query=search_query)


def test_new_messages_appear_live_and_the_selection_is_kept(tmp_path: Path) -> None:
    home, roots = make_archive(tmp_path, "Why is the ferry late?")

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("Answer to: Why is the ferry late?")
        selected = ui.app.sessions.selected_ref
        await ui.wait_until(lambda: ui.app.is_watching, "the sync to end")
        write_session(roots[0].path, OTHER, "Paint the quay")
        await ui.wait_for_text("2 sessions")
        await ui.wait_for_text("Paint the quay")
        assert ui.app.sessions.selected_ref == selected
        write_session(roots[0].path, SESSION, "Why is the ferry late?", "And tomorrow?")
        await ui.wait_for_text("Answer to: And tomorrow?")

    run_ui(home, script, roots=roots, auto_sync=True)


def test_an_expanded_call_stays_expanded_when_the_session_continues(tmp_path: Path) -> None:
    root, home = tmp_path / "claude", tmp_path / "home"
    roots = [NamedRoot("claude-code", root)]

    def write_live_session(*more_prompts: str) -> None:
        session = Transcript(SESSION, seed=1, cwd="/home/zoe/ferry")
        session.user("Look at the log")
        session.run(tool_calls.bash("tail log.txt", "the quay is closed\nthe ferry waits"), text="Looking.")
        for prompt in more_prompts:
            session.user(prompt)
            session.assistant(f"Answer to: {prompt}")
        session.write(root)

    write_live_session()
    with History(home=home, roots=roots) as history:
        history.sync()

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("▸ Bash  tail log.txt")
        await ui.press("tab")
        while (block := ui.app.transcript.current_block) is None or block.kind != "call":
            await ui.press("down")
        await ui.press("enter")
        await ui.wait_for_text("┆ the ferry waits")
        await ui.press("home")
        await ui.wait_until(lambda: ui.app.is_watching, "the sync to end")
        write_live_session("And tomorrow?")
        await ui.wait_for_text("Answer to: And tomorrow?")
        await ui.wait_for_text("┆ the ferry waits")
        assert ui.app.transcript.cursor == 0

    run_ui(home, script, roots=roots, auto_sync=True)


def test_an_empty_history_shows_the_searched_folders_and_the_demo_command(tmp_path: Path) -> None:
    roots = [NamedRoot("claude-code", tmp_path / "nothing")]

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("No history found. Searched these folders:")
        await ui.wait_for_text("claude-code")
        await ui.wait_for_text("backscroll demo DIR")
        for key in ("j", "enter", "e", "y", "s", "t", "r", "n", "o", "w", "x", "tab", "escape", "G"):
            await ui.press(key)

    run_ui(tmp_path / "home", script, roots=roots, size=(160, 40))  # the notice fits in one line


def test_markup_and_escape_sequences_in_messages_have_no_effect(tmp_path: Path) -> None:
    home, roots = make_archive(
        tmp_path, "[bold]no[/bold] [@click=app.quit]x[/] \x1b]0;gotcha\x07\x1b[31mred \u202eback [/nothing]"
    )

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("▌ [bold]no[/bold] [@click=app.quit]x[/] red back [/nothing]")
        assert "\x1b" not in ui.text
        assert "\u202e" not in ui.text
        assert "gotcha" not in ui.text

    run_ui(home, script, roots=roots)


def test_wide_characters_do_not_shift_the_layout(tmp_path: Path) -> None:
    home, roots = make_archive(tmp_path, "渡し船はなぜ遅れますか" * 12 + " 👩‍👩‍👧 ok")

    async def script(ui: UiDriver) -> None:
        await ui.wait_for_text("Answer to")
        rows = [line for line in ui.lines() if "渡" in line and "▕" in line]
        assert len(rows) > 2
        assert {cell_len(line[: line.index("▕")]) for line in ui.lines() if "▕" in line} == {57}
        assert all(cell_len(line) <= 140 for line in rows)

    run_ui(home, script, roots=roots)
