"""The page about the terminal UI matches the program."""

import re
from html import unescape
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history import History
from backscroll.tui.dialogs import KEYS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "guide" / "terminal-ui.md"
PICTURE = DOCS / "pictures" / "tui.svg"


def test_the_picture_shows_the_demo_history(synced: Path) -> None:
    svg = PICTURE.read_text(encoding="utf-8")
    text = unescape(re.sub(r"<[^>]+>", "", svg)).replace("\xa0", " ")
    with History(home=synced, roots=[NamedRoot("claude-code", synced)]) as history:
        titles = [summary.title or "" for summary in history.list_sessions(limit=5).data]
    assert titles
    assert all(title in text for title in titles)
    assert "http" not in svg.replace("http://www.w3.org/", "")


def test_every_key_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for _, keys in KEYS:
        for key, _ in keys:
            for one in key.split():
                assert f"`{one}`" in page, one
