"""The screen as a whole: what stands where, which key does what."""

import os
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input, Static

from backscroll.render.terminal.width import cell_width, truncate
from backscroll.tui.actions import Keeping
from backscroll.tui.footer import Keys
from backscroll.tui.session_list.model import Narrowing
from backscroll.tui.session_list.panel import Welcome
from backscroll.tui.session_list.widget import SessionList
from backscroll.tui.transcript.widget import Transcript
from backscroll.tui.worker import Open

__all__ = ["Backscroll"]

_THEMES = {"dark": "textual-dark", "light": "textual-light"}
_PLACEHOLDER = "words · Enter keeps them · Esc goes back"
_REST = 0.3  # seconds after which a sync begins, so that the first screen need not wait for it
_LIGHT = {"7", "9", "10", "11", "12", "13", "14", "15"}  # backgrounds that are bright


class Backscroll(Keeping):
    """Sessions on the left, what was said on the right."""

    TITLE = "Backscroll"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-narrow"),
        (100, "-wide"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        # Before any widget is asked: what is typed right after these is already meant for the line.
        Binding("slash", "question('search')", "Search", priority=True),
        Binding("f", "question('filter')", "Filter", priority=True),
        Binding("n", "next(1)", "Next"),
        Binding("N", "next(-1)", "Match before"),
        Binding("r", "resume", "Resume"),
        Binding("e", "export", "Export"),
        Binding("y", "copy", "Copy"),
        Binding("s", "star", "Star"),
        Binding("t", "tag", "Tag"),
        Binding("question_mark", "help", "Help"),
        Binding("q", "quit", "Quit"),
        Binding("w", "pick('workspace')", "Workspace"),
        Binding("S", "pick('source')", "Source"),
        Binding("o", "order", "Order"),
        Binding("asterisk", "starred", "Starred"),
        Binding("Y", "copy_ref", "Copy ref"),
        Binding("D", "theme", "Light or dark"),
        Binding("escape", "step_back", "Back"),
        Binding("tab", "switch", "Other side", priority=True),
    ]

    def __init__(
        self,
        open_history: Open,
        *,
        welcome: Welcome,
        narrowing: Narrowing | None = None,
        words: str = "",
        theme: str | None = None,
        syncs: bool = True,
    ) -> None:
        super().__init__(open_history, welcome)
        self.narrowing = narrowing or Narrowing()
        self.words = words
        self.syncs = syncs
        self._first_theme = theme

    def compose(self) -> ComposeResult:
        yield Static(id="status")
        with Horizontal(id="question"):
            yield Static("Search", markup=False)
            yield Input(compact=True, select_on_focus=False, placeholder=_PLACEHOLDER)
        with Horizontal(id="panes"):
            yield SessionList()
            yield Transcript()
        yield Keys(id="keys")

    def on_mount(self) -> None:
        wanted = _THEMES[self._first_theme or _brightness()]
        if self.theme != wanted:
            self.theme = wanted
        self.sessions.focus()
        self.first_list()
        if self.words:
            self.search()
        if self.syncs:
            self.set_timer(_REST, self.start_sync)

    # --- back and forth -----------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key does something here: in a line to write in, it is only a letter."""
        if action == "question":
            return len(self.screen_stack) == 1 and not isinstance(self.focused, Input)
        return super().check_action(action, parameters)

    def action_step_back(self) -> None:
        """One step back: out of the line, the transcript, the search, the filters."""
        if self.line.has_focus and not self.line.value:
            self.close_line()
            self.sessions.focus()
        elif self.line.has_focus or self.transcript.has_focus:
            self.is_reading = False
            self.sessions.focus()
        elif self.words:
            self.words = ""
            self.close_line()
            self.search()
            self.transcript.mark("")
        elif self.narrowing != Narrowing():
            self.close_line()
            self.narrow(source=None, workspace=None, is_starred=False, words="")

    def action_switch(self) -> None:
        """To the other side."""
        if self.transcript.has_focus:
            self.is_reading = False
            self.sessions.focus()
        elif self.is_wide or self.read_summary is not None:
            self.is_reading = True
            self.transcript.focus()

    def on_key(self, event: events.Key) -> None:
        """While somebody types, the arrows move in the list."""
        if self.line.has_focus and event.key in ("down", "up"):
            self.sessions.action_move(1 if event.key == "down" else -1)
            event.stop()

    def action_help(self) -> None:
        from backscroll.tui.dialogs import Help

        self.push_screen(Help())

    def action_theme(self) -> None:
        """Light or dark."""
        self.theme = _THEMES["light" if self.theme == _THEMES["dark"] else "dark"]

    # --- the line at the top ------------------------------------------------------------------------------

    @on(Transcript.Moved)
    def _moved(self) -> None:
        self.tell_state()

    def tell_state(self) -> None:
        """What is shown at the top: how much there is, what it is narrowed to, how far somebody has read."""
        if not self.is_running:
            return
        right = " · ".join(part for part in (self._how_far(), self.sync_state) if part)
        room = max(self.size.width - 2, 1)
        left = truncate(self._what(), max(room - cell_width(right) - 2, 1))
        gap = " " * max(room - cell_width(left) - cell_width(right), 1)
        told = Text(left, no_wrap=True)
        told.append(gap + right)
        self.query_one("#status", Static).update(told)

    def on_descendant_focus(self) -> None:
        self.tell_keys()

    def on_resize(self) -> None:
        self.tell_keys()
        self.tell_state()

    def tell_keys(self) -> None:
        """Show the keys of where somebody is."""
        where = "line" if self.line.has_focus else "transcript" if self.transcript.has_focus else "sessions"
        self.query_one(Keys).tell(where, self.size.width)

    def _what(self) -> str:
        narrowed = self.narrowing.named
        if self.found is not None:
            found = self.found
            number = f"{found.total:,}" if found.total is not None else f"{len(found.data):,} best"
            parts = [f"{number} found for {self.words.strip()!r} in {found.took_ms:.0f} ms", narrowed]
        else:
            shown, every = self.sessions.count, len(self.shelf.every)
            more = "" if self.is_listed else "+"
            number = f"{shown:,} of {every:,}{more}" if shown != every else f"{every:,}{more}"
            words = f"“{self.narrowing.words.strip()}”" if self.narrowing.words.strip() else ""
            order = self.order if self.order != "newest" else ""
            parts = [f"{number} {'session' if number == '1' else 'sessions'}", words, narrowed, order]
        return " · ".join(part for part in ("Backscroll", *parts) if part)

    def _how_far(self) -> str:
        transcript = self.transcript
        if self.read_summary is None or not (self.is_wide or self.is_reading):
            return ""
        if not transcript.is_complete:
            return f"reading … {len(transcript.layout_.blocks):,}"
        height = max(transcript.layout_.height - 1, 1)
        number = len(self._places or ())
        matches = "1 match · " if number == 1 else f"{number:,} matches · " if number else ""
        return f"{matches}{100 * min(transcript.cursor, height) // height} %"


def _brightness() -> str:
    """Whether the terminal is light or dark, as far as it says so."""
    return "light" if os.environ.get("COLORFGBG", "").rpartition(";")[2] in _LIGHT else "dark"
