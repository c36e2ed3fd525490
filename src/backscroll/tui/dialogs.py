"""What stands over the screen for a moment: help, a choice, a line to write."""

from collections.abc import Sequence

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList, Static
from textual.widgets.option_list import Option

from backscroll.model.sanitize import one_line
from backscroll.tui.session_list.model import Choice

__all__ = ["Ask", "Help", "Pick"]

_MOST = 500  # choices that are shown; typing narrows them

KEYS = (
    ("Everywhere", (
        ("/", "search everything that was said"),
        ("f", "filter the list by title, workspace, branch, tag or model"),
        ("w  S  *", "only one workspace, only one source, only starred"),
        ("o", "another order: newest, oldest, longest, tokens, title"),
        ("Tab", "from the list to the transcript and back"),
        ("Esc", "one step back: from transcript, search and filters"),
        ("D", "light or dark"),
        ("?  q", "this page; quit"),
    )),
    ("In the list", (
        ("↑ ↓  j k", "another session; PgUp PgDn, g G for the ends"),
        ("Enter", "read it"),
    )),
    ("In the transcript", (
        ("↑ ↓  j k", "line by line; Space and b page by page, g G for the ends"),
        ("[ ]", "the prompt before, the next prompt"),
        ("n N", "the next place where something was found, the one before"),
        ("Enter", "unfold a call, a thought or a subagent, or fold it again"),
        ("x", "unfold all calls and thoughts, or fold them again"),
    )),
    ("With the session", (
        ("r", "resume it in its own tool"),
        ("e", "export it to a file; the ending says the format: md html json jsonl txt"),
        ("y  Y", "copy the message under the cursor; copy the ref"),
        ("s  t", "give it a star or take it away; change its tags"),
    )),
)  # fmt: skip


class Help(ModalScreen[None]):
    """Every key."""

    BINDINGS = [Binding("escape,q,question_mark,enter", "dismiss", "Back")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        told = Text()
        for title, keys in KEYS:
            told.append(f"{title}\n", "bold")
            for key, does in keys:
                told.append(f"  {key:<10}")
                told.append(f"{does}\n")
            told.append("\n")
        told.append('What can be written in a search: words, "phrases", -not, OR, prefix*,\n')
        told.append("role: source: workspace: tool: model: file: branch: since: until: tag: is: has:")
        with VerticalScroll(classes="dialog"):
            yield Static(told)


class Pick(ModalScreen[str | None]):
    """One of several, or all: dismissed with its value, "" for all, None for no change."""

    BINDINGS = [  # noqa: RUF012
        Binding("escape", "dismiss(None)", "Back"),
        Binding("down", "step(1)", "Down", show=False),
        Binding("up", "step(-1)", "Up", show=False),
    ]

    def __init__(self, title: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Label(self._title, markup=False)
            yield Input(placeholder="type to narrow", id="narrow", compact=True)
            yield OptionList(*self._options(""), id="choices", markup=False, compact=True)

    def on_mount(self) -> None:
        self.query_one("#choices", OptionList).highlighted = 0

    def _options(self, words: str) -> list[Option]:
        every = [Option(Text("all"), id="*")] if not words.strip() else []
        wanted = words.casefold().split()
        for place, choice in enumerate(self._choices):
            if all(word in choice.value.casefold() for word in wanted):
                told = Text(f"{choice.number:>6,}  {one_line(choice.name, 60)}")
                if choice.value != choice.name:
                    told.append(f"  {one_line(choice.value, 200)}", "dim")
                every.append(Option(told, id=str(place)))
        return every[:_MOST]

    @on(Input.Changed, "#narrow")
    def _narrow(self, event: Input.Changed) -> None:
        options = self.query_one("#choices", OptionList)
        options.clear_options()
        options.add_options(self._options(event.value))
        options.highlighted = 0 if options.option_count else None

    def action_step(self, step: int) -> None:
        options = self.query_one("#choices", OptionList)
        if step > 0:
            options.action_cursor_down()
        else:
            options.action_cursor_up()

    @on(Input.Submitted, "#narrow")
    def _take(self) -> None:
        self.query_one("#choices", OptionList).action_select()

    @on(OptionList.OptionSelected)
    def _taken(self, event: OptionList.OptionSelected) -> None:
        id_ = event.option.id
        self.dismiss("" if id_ == "*" or id_ is None else self._choices[int(id_)].value)


class Ask(ModalScreen[str | None]):
    """A line to write: dismissed with it, or with None."""

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
    def _done(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)
