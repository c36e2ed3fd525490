"""Drive the terminal UI in tests: press keys, wait, and read the screen."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from backscroll.cli.messages import permission_lines, welcome_lines
from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.tui.app import Backscroll

TIMEOUT_SECONDS = 15.0  # long enough for a busy machine


class UiDriver:
    """Sends keys to a running UI and reads its screen."""

    def __init__(self, app: Backscroll, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type_text(self, text: str) -> None:
        """Insert text into the focused input. Much faster than pressing keys."""
        focused = self.app.focused
        assert isinstance(focused, Input)
        focused.insert_text_at_cursor(text)
        await self.pilot.pause()

    def lines(self) -> list[str]:
        """Return the lines of the screen, without styles."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())

    async def wait_until(self, is_true: Callable[[], bool], expected: str) -> None:
        """Wait until a condition is true; fail with the expectation and the screen after the timeout."""
        end = asyncio.get_running_loop().time() + TIMEOUT_SECONDS
        while not is_true():
            is_in_time = asyncio.get_running_loop().time() < end
            assert is_in_time, f"timeout, expected: {expected}\n{self.text}"
            await self.pilot.pause(0.02)

    async def wait_for_text(self, text: str) -> None:
        """Wait until the screen contains a text."""
        await self.wait_until(lambda: text in self.text, f"{text!r} on the screen")

    async def wait_until_gone(self, text: str) -> None:
        """Wait until the screen does not contain a text."""
        await self.wait_until(lambda: text not in self.text, f"{text!r} gone from the screen")


def run_ui(
    home: Path,
    script: Callable[[UiDriver], Awaitable[None]],
    *,
    roots: list[NamedRoot] | None = None,
    size: tuple[int, int] = (140, 40),
    auto_sync: bool = False,
    search_query: str = "",
) -> None:
    """Open the UI on an archive and run a script in it."""

    async def run() -> None:
        app = Backscroll(
            lambda: History(home=home, roots=roots or []),
            welcome=welcome_lines,
            theme="dark",
            auto_sync=auto_sync,
            search_query=search_query,
            permission_lines=permission_lines,
        )
        async with app.run_test(size=size, notifications=True) as pilot:
            ui = UiDriver(app, pilot)
            await ui.wait_until(lambda: app.is_list_complete, "all sessions listed")
            await script(ui)

    asyncio.run(run())
