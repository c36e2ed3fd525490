"""Sit in front of the terminal UI: press keys, wait, and read what is on the screen."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from backscroll.cli.hints import welcome_lines
from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.tui.app import Backscroll

__all__ = ["Seat", "sit"]

_PATIENCE = 15.0  # seconds; the machine may be busy


class Seat:
    """Somebody in front of the screen."""

    def __init__(self, app: Backscroll, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, words: str) -> None:
        """Write into the line that is open, much faster than by keys."""
        line = self.app.focused
        assert isinstance(line, Input)
        line.insert_text_at_cursor(words)
        await self.pilot.pause()

    def lines(self) -> list[str]:
        """What is on the screen, without colours."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    async def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait for something to be so."""
        end = asyncio.get_running_loop().time() + _PATIENCE
        while not is_so():
            assert asyncio.get_running_loop().time() < end, f"never {what}:\n{self.text}"
            await self.pilot.pause(0.02)

    async def sees(self, words: str) -> None:
        """Wait for words to be on the screen."""
        await self.until(lambda: words in self.text, f"seen {words!r}")

    async def misses(self, words: str) -> None:
        """Wait for words to be gone from the screen."""
        await self.until(lambda: words not in self.text, f"gone {words!r}")


def sit(
    home: Path,
    script: Callable[[Seat], Awaitable[None]],
    *,
    roots: list[NamedRoot] | None = None,
    size: tuple[int, int] = (140, 40),
    syncs: bool = False,
    words: str = "",
) -> None:
    """Open the terminal UI on an archive and do what the script says."""

    async def run() -> None:
        app = Backscroll(
            lambda: History(home=home, roots=roots or []),
            welcome=welcome_lines,
            theme="dark",
            syncs=syncs,
            words=words,
        )
        async with app.run_test(size=size, notifications=True) as pilot:
            seat = Seat(app, pilot)
            await seat.until(lambda: app.is_listed, "listed")
            await script(seat)

    asyncio.run(run())
