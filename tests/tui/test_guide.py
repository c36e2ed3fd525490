"""The guide to the terminal UI matches the program."""

import re
from html import unescape
from pathlib import Path

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.tui.dialogs import HELP_SECTIONS

DOCS = Path(__file__).parents[2] / "docs"
GUIDE = DOCS / "guide" / "terminal-ui.md"
PICTURE = DOCS / "pictures" / "tui.svg"


def test_the_picture_shows_the_demo_history(demo_home: Path) -> None:
    svg = PICTURE.read_text(encoding="utf-8")
    text = unescape(re.sub(r"<[^>]+>", "", svg)).replace("\xa0", " ")
    with History(home=demo_home, roots=[NamedRoot("claude-code", demo_home)]) as history:
        titles = [summary.title or "" for summary in history.list_sessions(limit=5).data]
    assert titles
    assert all(title in text for title in titles)
    assert "http" not in svg.replace("http://www.w3.org/", "")


def test_the_guide_contains_every_key_of_the_help() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    for _, keys in HELP_SECTIONS:
        for labels, _ in keys:
            for label in labels.split():
                assert f"`{label}`" in guide, label
