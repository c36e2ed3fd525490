"""The app: layout of the screen, key bindings, status line, footer."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from backscroll.model.text import pluralize
from backscroll.render.terminal_text import cell_width, truncate
from backscroll.tui.actions import PermissionLines, SessionActionsApp
from backscroll.tui.dialogs import HelpDialog
from backscroll.tui.session_list import ListFilter, SessionList
from backscroll.tui.session_list_panel import Welcome
from backscroll.tui.transcript import Transcript
from backscroll.tui.workers import OpenHistory

THEMES = {"dark": "textual-dark", "light": "textual-light"}
INPUT_PLACEHOLDER = "words · Enter to confirm · Esc to go back"
SYNC_DELAY_SECONDS = 0.3  # shows the first screen before the sync starts
LIGHT_BACKGROUNDS = {"7", "9", "10", "11", "12", "13", "14", "15"}  # color numbers in COLORFGBG
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
    """The bottom line: keys for the focused panel, clickable."""

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


class Backscroll(SessionActionsApp):
    """The terminal UI: session list on the left, transcript on the right."""

    TITLE = "Backscroll"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-narrow"),
        (100, "-wide"),
    ]
    BINDINGS: ClassVar[list[BindingType]] = [
        # Priority: the input must have the focus before the next key is handled.
        Binding("slash", "open_input('search')", "Search", priority=True),
        Binding("f", "open_input('filter')", "Filter", priority=True),
        Binding("n", "go_to_match(1)", "Next match"),
        Binding("N", "go_to_match(-1)", "Previous match"),
        Binding("r", "resume", "Resume"),
        Binding("e", "export", "Export"),
        Binding("y", "copy", "Copy"),
        Binding("s", "toggle_star", "Star"),
        Binding("t", "edit_tags", "Tag"),
        Binding("question_mark", "show_help", "Help"),
        Binding("q", "quit", "Quit"),
        Binding("w", "choose_filter('workspace')", "Workspace"),
        Binding("S", "choose_filter('source')", "Source"),
        Binding("o", "change_order", "Order"),
        Binding("asterisk", "toggle_starred_filter", "Starred"),
        Binding("Y", "copy_ref", "Copy ref"),
        Binding("D", "toggle_theme", "Light or dark"),
        Binding("escape", "go_back", "Back"),
        Binding("tab", "switch_panel", "Switch panel", priority=True),
    ]

    def __init__(
        self,
        open_history: OpenHistory,
        *,
        welcome: Welcome,
        list_filter: ListFilter | None = None,
        search_query: str = "",
        theme: str | None = None,
        auto_sync: bool = True,
        permission_lines: PermissionLines = lambda _: (),
    ) -> None:
        super().__init__(open_history, welcome)
        self.permission_lines = permission_lines
        self.list_filter = list_filter or ListFilter()
        self.search_query = search_query
        self.auto_sync = auto_sync
        self._initial_theme = theme

    def compose(self) -> ComposeResult:
        yield Static(id="status")
        with Horizontal(id="input-bar"):
            yield Static("Search", markup=False)
            yield Input(compact=True, select_on_focus=False, placeholder=INPUT_PLACEHOLDER)
        yield Static(id="search-note", markup=False)
        with Horizontal(id="panes"):
            yield SessionList()
            yield Transcript()
        yield KeyFooter(id="keys")

    def on_mount(self) -> None:
        theme = THEMES[self._initial_theme or _detect_theme()]
        if self.theme != theme:
            self.theme = theme
        self.focus_list()
        self.load_list()
        if self.search_query:
            self.search()
        if self.auto_sync:
            self.set_timer(SYNC_DELAY_SECONDS, self.start_sync)

    # --- navigation ---------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key triggers its action. In an input, the keys / and f are text."""
        if action == "open_input":
            return len(self.screen_stack) == 1 and not isinstance(self.focused, Input)
        return super().check_action(action, parameters)

    def action_go_back(self) -> None:
        """Leave the input or the transcript; else clear the search; else clear the filter."""
        if self.input_line.has_focus and self.is_finding:
            self.close_input()
            self.focus_transcript()
        elif self.input_line.has_focus or self.transcript.has_focus:
            if not self.input_line.value:
                self.close_input()
            self.focus_list()
        elif self.search_query:
            self.search_query = ""
            self.close_input()
            self.search()
            self.transcript.highlight("")
        elif self.list_filter != ListFilter():
            self.close_input()
            self.change_filter(source=None, workspace=None, is_starred=False, text="")

    def action_switch_panel(self) -> None:
        """Move the focus to the other panel."""
        if self.transcript.has_focus:
            self.focus_list()
        elif self.is_wide or self.shown_session is not None:
            self.focus_transcript()

    def on_key(self, event: events.Key) -> None:
        """Move the selection with the arrow keys while the input has the focus."""
        if self.input_line.has_focus and event.key in ("down", "up"):
            self.sessions.action_move(1 if event.key == "down" else -1)
            event.stop()

    def action_show_help(self) -> None:
        self.push_screen(HelpDialog())

    def action_toggle_theme(self) -> None:
        """Switch between the light and the dark theme."""
        self.theme = THEMES["light" if self.theme == THEMES["dark"] else "dark"]

    # --- status line and footer ---------------------------------------------------------------------------

    @on(Transcript.CursorMoved)
    def _cursor_moved(self) -> None:
        self.update_status()

    def update_status(self) -> None:
        """Update the status line: session count, filters, position in the transcript, sync."""
        if not self.is_running:
            return
        right = " · ".join(part for part in (self._transcript_status(), self.sync_status) if part)
        width = max(self.size.width - 2, 1)
        left = truncate(self._list_status(), max(width - cell_width(right) - 2, 1))
        gap = " " * max(width - cell_width(left) - cell_width(right), 1)
        text = Text(left, no_wrap=True)
        text.append(gap + right)
        self.query_one("#status", Static).update(text)

    def on_descendant_focus(self) -> None:
        self.show_focused_panel()
        self.update_search_note()
        self.update_footer()
        self.update_status()  # a narrow terminal shows the position only with the transcript

    @on(KeyFooter.Resized)
    def _footer_resized(self) -> None:
        # `App.on_resize` would be too early: it runs before the app and the screen have the new size.
        self.update_footer()
        self.update_status()

    def update_footer(self) -> None:
        """Show the keys of the focused panel."""
        if self.input_line.has_focus:
            panel = "input"
        else:
            panel = "transcript" if self.transcript.has_focus else "sessions"
        self.query_one(KeyFooter).show_keys(panel, self.size.width)

    def _list_status(self) -> str:
        filters = self.list_filter.label
        if self.search_result is not None:
            result = self.search_result
            shown_count = f"best {len(result.data):,}" if result.has_more else f"{len(result.data):,}"
            count = f"{result.row_count:,}" if result.row_count is not None else shown_count
            parts = [f"{count} found for {self.search_query.strip()!r} in {result.took_ms:.0f} ms", filters]
        else:
            shown, total = self.sessions.entry_count, len(self.list_model.summaries)
            plus = "" if self.is_list_complete else "+"
            count = f"{shown:,} of {total:,}{plus}" if shown != total else f"{total:,}{plus}"
            filter_text = self.list_filter.text.strip()
            quoted_text = f"“{filter_text}”" if filter_text else ""
            order = self.list_order if self.list_order != "newest" else ""
            parts = [f"{count} {'session' if count == '1' else 'sessions'}", quoted_text, filters, order]
        return " · ".join(part for part in ("Backscroll", *parts) if part)

    def _transcript_status(self) -> str:
        transcript = self.transcript
        if self.shown_session is None or not (self.is_wide or self.is_transcript_open):
            return ""
        if not transcript.is_complete:
            return f"loading … {len(transcript.text_layout.blocks):,}"
        height = max(transcript.text_layout.height - 1, 1)
        match_count = len(self._matches or ())
        matches = f"{pluralize(match_count, 'match', 'matches')} · " if match_count else ""
        return f"{matches}{100 * min(transcript.cursor, height) // height} %"


def _detect_theme() -> str:
    """Return "light" or "dark" from the terminal's COLORFGBG variable. The default is dark."""
    return "light" if os.environ.get("COLORFGBG", "").rpartition(";")[2] in LIGHT_BACKGROUNDS else "dark"
