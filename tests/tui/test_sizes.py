"""Any terminal will do."""

from pathlib import Path

import pytest

from tests.tui.screen import Seat, sit


def test_eighty_columns_show_the_list_or_the_transcript(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        assert "A page about the year" in seat.text
        assert "I want a page about my year" not in seat.text
        await seat.press("enter")
        await seat.sees("I want a page about my year")
        assert "Release notes for 0.4.0" not in seat.text
        assert all(len(line) <= 80 for line in seat.lines())
        await seat.press("escape")
        await seat.sees("Release notes for 0.4.0")
        assert "? Help" in seat.lines()[-1]
        assert "q Quit" in seat.lines()[-1]

    sit(synced, script, size=(80, 24))


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (300, 90), (100, 3)])
def test_nothing_breaks_when_the_terminal_becomes(synced: Path, size: tuple[int, int]) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("j")
        await seat.sees("write a CHANGELOG.md entry")
        await seat.press("tab", "G")
        await seat.pilot.resize_terminal(*size)
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
            await seat.press(key)
        await seat.pilot.resize_terminal(140, 40)
        await seat.press("tab", "g", "tab", "g")
        await seat.sees("A page about the year")

    sit(synced, script)


def test_the_place_is_kept_when_the_terminal_is_resized(synced: Path) -> None:
    async def script(seat: Seat) -> None:
        await seat.press("j")
        await seat.sees("write a CHANGELOG.md entry")
        await seat.press("tab", "G")
        await seat.until(lambda: seat.app.transcript.is_complete, "read")
        before = seat.app.transcript.current
        await seat.pilot.resize_terminal(110, 20)
        await seat.until(lambda: seat.app.transcript.layout_.width < 80, "laid out anew")
        assert seat.app.transcript.current == before

    sit(synced, script)
