"""Tests with narrow, tiny and large terminals."""

from pathlib import Path

import pytest

from tests.tui.ui_driver import UiDriver, run_ui


def test_a_narrow_terminal_shows_either_the_list_or_the_transcript(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        assert "A page about the year" in ui.text
        assert "I want a page about my year" not in ui.text
        await ui.press("enter")
        await ui.wait_for_text("I want a page about my year")
        assert "Release notes for 0.4.0" not in ui.text
        assert all(len(line) <= 80 for line in ui.lines())
        await ui.press("escape")
        await ui.wait_for_text("Release notes for 0.4.0")
        assert "? Help" in ui.lines()[-1]
        assert "q Quit" in ui.lines()[-1]

    run_ui(demo_home, script, size=(80, 24))


@pytest.mark.parametrize("key", ["escape", "tab"])
def test_the_list_of_a_narrow_terminal_shows_no_position_in_the_transcript(demo_home: Path, key: str) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("enter")
        await ui.wait_until(lambda: ui.lines()[0].endswith(" %"), "a position in the status line")
        await ui.press(key)
        await ui.wait_until(lambda: ui.lines()[0] == " Backscroll · 46 sessions", "no position")

    run_ui(demo_home, script, size=(80, 24))


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (300, 90), (100, 3)])
def test_the_ui_survives_a_resize_to_any_size(demo_home: Path, size: tuple[int, int]) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("j")
        await ui.wait_for_text("write a CHANGELOG.md entry")
        await ui.press("tab", "G")
        await ui.pilot.resize_terminal(*size)
        for key in (
            "k",
            "pageup",
            "enter",
            "x",
            "g",
            "tab",
            "j",
            "question_mark",
            "escape",
            "slash",
            "escape",
        ):
            await ui.press(key)
        await ui.pilot.resize_terminal(140, 40)
        await ui.press("tab", "g", "tab", "g")
        await ui.wait_for_text("A page about the year")

    run_ui(demo_home, script)


def test_a_resize_keeps_the_position(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("j")
        await ui.wait_for_text("write a CHANGELOG.md entry")
        await ui.press("tab", "G")
        await ui.wait_until(lambda: ui.app.transcript.is_complete, "a complete transcript")
        before = ui.app.transcript.current_block
        await ui.pilot.resize_terminal(110, 20)
        await ui.wait_until(lambda: ui.app.transcript.text_layout.width < 80, "a narrower layout")
        assert ui.app.transcript.current_block == before

    run_ui(demo_home, script)


@pytest.mark.parametrize("width", [15, 30])
def test_the_first_and_last_line_use_the_width_of_an_enlarged_terminal(demo_home: Path, width: int) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.wait_until(lambda: ui.lines()[0].endswith(" %"), "a position in the status line")
        before = ui.lines()[0], ui.lines()[-1]
        assert "S Source" in before[1]
        await ui.pilot.resize_terminal(width, 24)
        await ui.wait_until(lambda: ui.lines()[-1].endswith("? Help q Quit"), "all of a short footer")
        await ui.pilot.resize_terminal(100, 24)
        await ui.wait_until(lambda: (ui.lines()[0], ui.lines()[-1]) == before, "the lines as before")

    run_ui(demo_home, script, size=(100, 24))


def test_a_narrow_terminal_shows_the_results_of_a_search_that_starts_in_a_transcript(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("enter")
        await ui.wait_for_text("I want a page about my year")
        await ui.press("slash")
        await ui.type_text("clocks")
        await ui.wait_for_text("▌503 in the night the clocks went back")
        await ui.press("enter", "j")
        await ui.wait_for_text("▌Departures two hours late on the board")
        await ui.press("enter")
        await ui.wait_until_gone("Departures two hours late on the board\n")
        assert ui.app.transcript.has_focus
        await ui.press("f", "escape")  # leaves the input, not the transcript
        await ui.wait_until(lambda: ui.app.transcript.has_focus, "the focus in the transcript")
        assert ui.app.is_transcript_open

    run_ui(demo_home, script, size=(80, 24))


def test_a_narrow_terminal_shows_the_list_after_choosing_a_workspace_in_a_transcript(demo_home: Path) -> None:
    async def script(ui: UiDriver) -> None:
        await ui.press("enter")
        await ui.wait_for_text("I want a page about my year")
        await ui.press("w")
        await ui.wait_for_text("Filter by workspace:")
        await ui.type_text("saltern")
        await ui.press("enter")
        await ui.wait_for_text("of 46 sessions · saltern")
        await ui.wait_until(lambda: ui.lines()[1].startswith("▌"), "the list")
        await ui.press("w", "escape")
        assert ui.app.sessions.has_focus

    run_ui(demo_home, script, size=(80, 24))
