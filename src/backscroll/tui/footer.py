"""The keys that matter where somebody is, in one line, to be read or clicked."""

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text
from textual.widgets import Static

from backscroll.render.terminal.width import cell_width

__all__ = ["LINES", "Keys"]

# What is shown, what it does, and the key that a click presses; the first ones go first when it is narrow.
_EVERYWHERE = (("?", "Help", "question_mark"), ("q", "Quit", "q"))
_WITH_IT = (
    ("r", "Resume", "r"),
    ("e", "Export", "e"),
    ("y", "Copy", "y"),
    ("s", "Star", "s"),
    ("t", "Tag", "t"),
)
LINES: dict[str, Sequence[tuple[str, str, str]]] = {
    "sessions": (
        ("⏎", "Read", "enter"),
        ("/", "Search", "slash"),
        ("f", "Filter", "f"),
        *_WITH_IT,
        ("w", "Workspace", "w"),
        ("S", "Source", "S"),
        ("o", "Order", "o"),
        ("*", "Starred", "asterisk"),
    ),
    "transcript": (
        ("⏎", "Unfold", "enter"),
        ("x", "All", "x"),
        ("n", "Next", "n"),
        ("/", "Search", "slash"),
        ("f", "Find here", "f"),
        *_WITH_IT,
        ("]", "Next prompt", "right_square_bracket"),
        ("Esc", "Back", "escape"),
    ),
    "line": (("⏎", "Keep", "enter"), ("↓", "Next", "down"), ("↑", "Before", "up"), ("Esc", "Back", "escape")),
}


class Keys(Static):
    """The line at the bottom."""

    DEFAULT_CSS = "Keys { height: 1; }"
    COMPONENT_CLASSES = {"keys--key"}  # noqa: RUF012

    def tell(self, where: str, width: int) -> None:
        """Show the keys of a place, as many as there is room for; help and the way out always."""
        always = () if where == "line" else _EVERYWHERE
        room = width - sum(map(_width, always))
        shown = []
        for key in LINES[where]:
            room -= _width(key)
            if room < 0:
                break
            shown.append(key)
        told = Text(no_wrap=True)
        bold = Style(bold=True) + Style(color=self.get_component_rich_style("keys--key", partial=True).color)
        for name, does, press in (*shown, *always):
            click = Style(meta={"@click": f"app.simulate_key('{press}')"})
            told.append(f" {name}", bold + click)
            told.append(f" {does}", click)
        self.update(told)


def _width(key: tuple[str, str, str]) -> int:
    return cell_width(key[0]) + len(key[1]) + 2
