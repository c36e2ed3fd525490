"""What the page about the terminal UI shows is what is on the screen.

``pytest tests/tui/test_guide.py --update-golden`` writes the screen anew; the diff is to be reviewed.
"""

import re
from pathlib import Path

from backscroll.tui.dialogs import KEYS
from tests.commands import settled
from tests.tui.screen import Seat, sit

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "terminal-ui.md"
SCREEN = re.compile(r"(?<=^```text\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)


def test_the_guide_shows_the_screen(synced: Path, update_golden: bool) -> None:
    shown: list[str] = []

    async def script(seat: Seat) -> None:
        await seat.press("j", "j", "j")
        await seat.sees("On 25 October")
        await seat.press("tab", "right_square_bracket", "right_square_bracket")
        while (block := seat.app.transcript.current) is None or not block.head.startswith("Bash"):
            await seat.press("down")
        await seat.press("enter")
        await seat.sees("1 failed, 10 passed")
        shown.extend(seat.lines())

    sit(synced, script, size=(120, 26))
    page = PAGE.read_text(encoding="utf-8")
    screen = "".join(f"{line}\n" for line in shown)
    if update_golden:
        PAGE.write_text(SCREEN.sub(lambda _: screen, page, count=1), encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
    told = SCREEN.search(page)
    assert told is not None
    assert plain(told[0]) == plain(screen)


def plain(screen: str) -> list[str]:
    """A screen without what is different on another day."""
    aged = re.sub(r"\* · [^▕]*▕", "* ▕", settled(screen))  # a longer age leaves less room for the rest
    aged = re.sub(r"\d+ %", "*", aged)  # the path of the workspace takes more lines or fewer
    return [re.sub(r"[ ▁-▆]+", " ", line) for line in aged.splitlines()]


def test_every_key_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for _, keys in KEYS:
        for key, _ in keys:
            for one in key.split():
                assert f"`{one}`" in page, one
