"""Tests of finding text in a transcript."""

from pathlib import Path
from threading import Event
from typing import Any

import pytest

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from backscroll.tui import transcript_panel
from backscroll.tui.blocks import Block, load_blocks
from tests.tui.ui_driver import UiDriver, run_ui

SESSION = "5e551011-0000-4000-8000-0000000000c3"


def make_archive(tmp_path: Path, *prompts: str) -> Path:
    """Return the home of an archive with one session."""
    session = Transcript(SESSION, cwd="/home/zoe/ferry")
    for prompt in prompts:
        session.user(prompt)
        session.assistant("Done.")
    session.write(tmp_path / "claude")
    with History(home=tmp_path / "home", roots=[NamedRoot("claude-code", tmp_path / "claude")]) as history:
        history.sync()
    return tmp_path / "home"


async def find(ui: UiDriver, text: str) -> None:
    await ui.wait_until(lambda: ui.app.shown_session is not None, "a session")
    await ui.press("tab", "f")
    await ui.type_text(text)
    await ui.press("enter")
    await ui.wait_until(lambda: ui.app._matches is not None, "matches")


def current_line(ui: UiDriver) -> str:
    row = ui.app.transcript.text_layout.row_at(ui.app.transcript.cursor)
    return row.text if row is not None else ""


def test_find_waits_for_a_match_that_is_not_loaded_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_archive(tmp_path, *(f"Departure number {number}" for number in range(200)))
    is_released = Event()

    def load_slowly(history: History, ref: str, take_batch: Any, **options: Any) -> Any:
        def take_and_wait(summary: Any, blocks: list[Block]) -> bool:
            is_wanted: bool = take_batch(summary, blocks)
            return is_released.wait(20) and is_wanted

        return load_blocks(history, ref, take_and_wait, **options)

    monkeypatch.setattr(transcript_panel, "load_blocks", load_slowly)

    async def script(ui: UiDriver) -> None:
        await find(ui, "number 150")
        await ui.pilot.pause(0.1)
        assert ui.app.transcript.cursor == 0
        assert not ui.app.transcript.is_complete
        is_released.set()
        await ui.wait_until(lambda: current_line(ui) == "Departure number 150", "the cursor at the match")
        await ui.wait_until(lambda: ui.app.transcript.is_complete, "a complete transcript")
        assert current_line(ui) == "Departure number 150"
        await ui.press("n")
        await ui.wait_for_text("No more matches in this session.")

    run_ui(home, script)


def test_find_with_several_words_stops_at_lines_that_have_all_of_them(tmp_path: Path) -> None:
    home = make_archive(
        tmp_path,
        "The ferry is late",
        "The quay\nA ferry at the quay\nno ferry\nThe quay without a ferry",
        "A quay",
        "First the ferry\nthen the quay\nthen the ferry",
    )

    async def script(ui: UiDriver) -> None:
        await find(ui, "ferry quay")
        for line in ("A ferry at the quay", "The quay without a ferry", "First the ferry"):
            await ui.wait_until(lambda line=line: current_line(ui) == line, line)  # type: ignore[misc]
            await ui.press("n")
        await ui.wait_for_text("No more matches in this session.")

    run_ui(home, script)


def test_find_does_not_stop_at_messages_with_some_of_the_words(tmp_path: Path) -> None:
    home = make_archive(tmp_path, "The ferry is late", "Paint the quay")

    async def script(ui: UiDriver) -> None:
        await find(ui, "ferry quay")
        await ui.wait_for_text("No message in this session has all words.")
        assert ui.app.transcript.cursor == 0

    run_ui(home, script)
