"""Modal dialogs: help, a choice from a list, a text input, an export."""

from collections.abc import Callable, Sequence

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from backscroll.history.highlighting import filter_names
from backscroll.model.export import FORMATS
from backscroll.model.text import one_line, sanitize
from backscroll.tui.session_list import Choice

MAX_OPTIONS = 500
ALL_OPTION_ID = "*"

HELP_SECTIONS = (
    ("Everywhere", (
        ("/", "search all sessions"),
        ("f", "filter by title, workspace, branch, tag, model or id"),
        ("w  S  *", "filter by workspace, by source, by star"),
        ("o", "change the order: newest, oldest, longest, tokens, title"),
        ("Tab", "switch between list and transcript"),
        ("Esc", "go back one step: leave the transcript, search or filter"),
        ("D", "switch between light and dark"),
        ("?  q", "help, quit"),
    )),
    ("In the list", (
        ("↑ ↓  j k", "move; PgUp PgDn by page, g G to the start or end"),
        ("Enter", "open the session"),
    )),
    ("In the transcript", (
        ("↑ ↓  j k", "move; Space and b by page, g G to the start or end"),
        ("[ ]", "previous, next prompt"),
        ("f", "find text in this session"),
        ("n N", "next, previous match"),
        ("Enter", "expand or fold a tool call, thinking or a subagent"),
        ("x", "expand or fold all tool calls and thinking"),
    )),
    ("Actions on the session", (
        ("r", "resume it in its own tool"),
        ("e", f"export it to a file: {' '.join(f'.{one}' for one in FORMATS)}"),
        ("y  Y", "copy the message under the cursor, copy the ref"),
        ("s  t", "toggle the star, edit the tags"),
    )),
)  # fmt: skip
QUERY_SYNTAX_HELP = 'Search syntax: words, "phrases", -not, OR, prefix*,\n'


class HelpDialog(ModalScreen[None]):
    """List of all keys."""

    BINDINGS = [Binding("escape,q,question_mark,enter", "dismiss", "Back")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        text = Text()
        for title, keys in HELP_SECTIONS:
            text.append(f"{title}\n", "bold")
            for key, action in keys:
                text.append(f"  {key:<10}")
                text.append(f"{action}\n")
            text.append("\n")
        text.append(QUERY_SYNTAX_HELP + " ".join(f"{name}:" for name in filter_names()))
        with VerticalScroll(classes="dialog"):
            yield Static(text)


class ChoiceDialog(ModalScreen[str | None]):
    """Choice from a list, filtered as the user types.

    The result is the chosen value, "" for all, or None if cancelled.
    """

    BINDINGS = [  # noqa: RUF012
        Binding("escape", "dismiss(None)", "Back"),
        Binding("down", "move(1)", "Down", show=False),
        Binding("up", "move(-1)", "Up", show=False),
    ]

    def __init__(self, title: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._title, markup=False)
            yield Input(placeholder="type to filter", id="choice-filter", compact=True)
            yield OptionList(*self._options(""), id="choices", markup=False, compact=True)

    def on_mount(self) -> None:
        self.query_one("#choices", OptionList).highlighted = 0

    def _options(self, filter_text: str) -> list[Option]:
        options = [Option(Text("all"), id=ALL_OPTION_ID)] if not filter_text.strip() else []
        words = filter_text.casefold().split()
        for index, choice in enumerate(self._choices):
            if all(word in choice.value.casefold() for word in words):
                label = Text(f"{choice.session_count:>6,}  {one_line(choice.name, 60)}")
                if choice.value != choice.name:
                    label.append(f"  {one_line(choice.value, 200)}", "dim")
                options.append(Option(label, id=str(index)))
        return options[:MAX_OPTIONS]

    @on(Input.Changed, "#choice-filter")
    def _filter_changed(self, event: Input.Changed) -> None:
        option_list = self.query_one("#choices", OptionList)
        option_list.clear_options()
        option_list.add_options(self._options(event.value))
        option_list.highlighted = 0 if option_list.option_count else None

    def action_move(self, step: int) -> None:
        option_list = self.query_one("#choices", OptionList)
        if step > 0:
            option_list.action_cursor_down()
        else:
            option_list.action_cursor_up()

    @on(Input.Submitted, "#choice-filter")
    def _filter_submitted(self) -> None:
        self.query_one("#choices", OptionList).action_select()

    @on(OptionList.OptionSelected)
    def _option_selected(self, event: OptionList.OptionSelected) -> None:
        id_ = event.option.id
        self.dismiss("" if id_ == ALL_OPTION_ID or id_ is None else self._choices[int(id_)].value)


class TextDialog(ModalScreen[str | None]):
    """Text input. The result is the text, or None if cancelled."""

    BINDINGS = [Binding("escape", "dismiss(None)", "Back")]  # noqa: RUF012

    def __init__(self, title: str, value: str, hint: str) -> None:
        super().__init__()
        self._title, self._value, self._hint = title, value, hint

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog small"):
            yield Label(self._title, markup=False)
            yield Input(self._value, select_on_focus=False, compact=True)
            yield Label(self._hint, markup=False, classes="hint")

    def on_key(self, event: events.Key) -> None:
        if event.key == "tab":
            event.stop()

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class ExportDialog(TextDialog):
    """Path of a file to write. After an error, the dialog stays open and shows it."""

    def __init__(self, path: str, write: Callable[[str, bool], None]) -> None:
        """Call `write` with the path, and with True if an existing file may be replaced."""
        hint = f"Format by file ending: {', '.join(FORMATS)} · Esc to cancel"
        super().__init__("Export to file:", path, hint)
        self._write = write
        self._is_writing = False
        self._existing_path: str | None = None  # Enter replaces this file

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog small"):
            yield Label(self._title, markup=False)
            yield Input(self._value, select_on_focus=False, compact=True)
            yield Label(markup=False, id="export-error")
            yield Label(self._hint, markup=False, classes="hint")

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.prevent_default()  # `TextDialog` would close
        path = event.value.strip()
        if not path:
            self.dismiss(None)
        elif not self._is_writing:
            self._is_writing = True
            self._write(path, path == self._existing_path)

    @on(Input.Changed)
    def _path_changed(self, event: Input.Changed) -> None:
        if event.value.strip() != self._existing_path:
            self._existing_path = None

    def show_error(self, text: str, *, existing_path: str | None = None) -> None:
        """Show why the file was not written. For an existing file, offer to replace it."""
        self._is_writing = False
        self._existing_path = existing_path
        offer = " Press Enter again to replace it." if existing_path is not None else ""
        self.query_one("#export-error", Label).update(sanitize(text + offer))
