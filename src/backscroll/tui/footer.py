"""The bottom line: keys for the focused panel, clickable."""

from collections.abc import Sequence

from rich.style import Style
from rich.text import Text
from textual.message import Message
from textual.widgets import Static

from backscroll.render.terminal.width import cell_width

__all__ = ["PANEL_KEYS", "KeyFooter"]

# Label, action, and the key that a click simulates. Most important first: a narrow terminal omits the last.
Key = tuple[str, str, str]
ALWAYS_SHOWN_KEYS: Sequence[Key] = (("?", "Help", "question_mark"), ("q", "Quit", "q"))
SESSION_KEYS: Sequence[Key] = (
    ("r", "Resume", "r"),
    ("e", "Export", "e"),
    ("y", "Copy", "y"),
    ("s", "Star", "s"),
    ("t", "Tag", "t"),
)
PANEL_KEYS: dict[str, Sequence[Key]] = {
    "sessions": (
        ("⏎", "Open", "enter"),
        ("/", "Search", "slash"),
        ("f", "Filter", "f"),
        *SESSION_KEYS,
        ("w", "Workspace", "w"),
        ("S", "Source", "S"),
        ("o", "Order", "o"),
        ("*", "Starred", "asterisk"),
    ),
    "transcript": (
        ("⏎", "Expand", "enter"),
        ("x", "All", "x"),
        ("n", "Next", "n"),
        ("/", "Search", "slash"),
        ("f", "Find", "f"),
        *SESSION_KEYS,
        ("]", "Next prompt", "right_square_bracket"),
        ("Esc", "Back", "escape"),
    ),
    "input": (
        ("⏎", "Confirm", "enter"),
        ("↓", "Next", "down"),
        ("↑", "Previous", "up"),
        ("Esc", "Back", "escape"),
    ),
}


class KeyFooter(Static):
    """The bottom line."""

    DEFAULT_CSS = "KeyFooter { height: 1; }"
    COMPONENT_CLASSES = {"keys--key"}  # noqa: RUF012

    class Resized(Message):
        """The footer, which is as wide as the terminal, has a new size."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def show_keys(self, panel: str, width: int) -> None:
        """Show as many keys of a panel as fit. Help and Quit are shown always, except in the input line."""
        always = () if panel == "input" else ALWAYS_SHOWN_KEYS
        free_width = width - sum(map(_key_width, always))
        fitting: list[Key] = []
        for key in PANEL_KEYS[panel]:
            free_width -= _key_width(key)
            if free_width < 0:
                break
            fitting.append(key)
        text = Text(no_wrap=True)
        bold = Style(bold=True) + Style(color=self.get_component_rich_style("keys--key", partial=True).color)
        for label, action, simulated_key in (*fitting, *always):
            click = Style(meta={"@click": f"app.simulate_key('{simulated_key}')"})
            text.append(f" {label}", bold + click)
            text.append(f" {action}", click)
        self.update(text)


def _key_width(key: Key) -> int:
    label, action, _ = key
    return cell_width(label) + len(action) + 2
