"""The app: layout of the screen, keys, actions on a session, sync in the background, status line."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from backscroll.errors import BackscrollError, SessionNotFoundError
from backscroll.history.history import History
from backscroll.model.export import FORMATS, format_of_file
from backscroll.model.session import SessionSummary
from backscroll.model.sync import SyncStatus
from backscroll.model.text import pluralize
from backscroll.render.humanize import format_remaining
from backscroll.render.session_header import file_name
from backscroll.render.terminal_text import cell_width, truncate
from backscroll.tui.dialogs import ExportDialog, HelpDialog, TextDialog
from backscroll.tui.session_list import ListFilter, SessionList
from backscroll.tui.session_list_panel import SessionListApp, Welcome
from backscroll.tui.transcript import Transcript
from backscroll.tui.workers import OpenHistory

if TYPE_CHECKING:
    from backscroll.model.resume import Command, Resumption


PermissionLines = Callable[[Sequence[str]], Iterable[str]]  # returns a message about unreadable paths
THEMES = {"dark": "textual-dark", "light": "textual-light"}
INPUT_PLACEHOLDER = "words · Enter to confirm · Esc to go back"
SYNC_DELAY_SECONDS = 0.3  # shows the first screen before the sync starts
SYNCING = "syncing"
IGNORE_TRACKER_WARNINGS = "ignore:resource_tracker:UserWarning"
PROGRESS_INTERVAL_SECONDS = 0.1
LIST_RELOAD_INTERVAL_SECONDS = 3.0  # during a sync
FIRST_RELOAD_INTERVAL_SECONDS = 0.5  # the same, while the list is empty
CLIPBOARD_TIMEOUT_SECONDS = 2.0
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


class Backscroll(SessionListApp):
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
    sync_status = ""  # progress or outcome, for the status line
    is_watching = False  # the first sync is complete; changes are followed live
    _last_progress_time = 0.0
    _last_reload_time = 0.0

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

    # --- sync ---------------------------------------------------------------------------------------------

    def start_sync(self) -> None:
        """Sync in the background, then follow changes until the app closes."""
        self._last_reload_time = time.monotonic()
        self._set_sync_status(SYNCING)
        self.run_in_worker("sync", self._sync_and_watch, lambda _: None)

    def _sync_and_watch(self, history: History) -> None:
        if self.closing.is_set():
            return
        _start_resource_tracker()
        try:
            for status in history.background_sync.follow(self.closing, self._report_progress):
                self._report_status(status)
        except (BackscrollError, OSError):
            self.call_on_ui_thread(lambda: self._finish_sync("sync failed"))
            raise
        if not history.is_complete:
            self.call_on_ui_thread(lambda: self._finish_sync("sync stopped"))
            return
        warning = " ".join(self.permission_lines(history.unreadable_paths()))
        self.call_on_ui_thread(lambda: self._finish_sync("", warning))
        for change in history.live.watch(self.closing):
            summary = change.session
            self.call_on_ui_thread(lambda summary=summary: self._session_changed(summary))  # type: ignore[misc]
            if self.closing.is_set():
                return

    def _report_progress(self, done: int, total: int) -> None:
        if self.closing.is_set():
            raise KeyboardInterrupt  # safe: each unit is one transaction
        now = time.monotonic()
        if now - self._last_progress_time > PROGRESS_INTERVAL_SECONDS:
            self._last_progress_time = now
            status = f"{SYNCING} {100 * done // total} %" if total else SYNCING
            self.call_on_ui_thread(lambda: self._show_progress(status))

    def _report_status(self, status: SyncStatus) -> None:
        text = f"{SYNCING} {status.percent} %" if status.percent is not None else SYNCING
        if status.remaining_seconds is not None:
            text += f", {format_remaining(status.remaining_seconds)} left"
        self.call_on_ui_thread(lambda: self._show_progress(text))

    def _show_progress(self, status: str) -> None:
        """Update the status line. Also reload the list from time to time, because a first sync is slow."""
        self._set_sync_status(status)
        is_empty = not self.list_model.summaries
        interval = FIRST_RELOAD_INTERVAL_SECONDS if is_empty else LIST_RELOAD_INTERVAL_SECONDS
        if time.monotonic() - self._last_reload_time > interval:
            self._last_reload_time = time.monotonic()
            self.reload_list()

    @property
    def is_syncing(self) -> bool:
        return self.auto_sync and not self.is_watching

    def _finish_sync(self, outcome: str, warning: str = "") -> None:
        self.is_watching = True
        if warning:
            self.show_notice(warning, is_warning=True)
        self._set_sync_status(outcome)
        self.reload_list()
        if self.search_result is not None and not self.search_result.has_more:
            self.search(keep_selection=True)

    def _session_changed(self, summary: SessionSummary) -> None:
        """Show a new or changed session."""
        if summary.parent_ref is None and self.is_list_complete:
            self.list_model.update(summary)
            self.show_list()
        shown = self.shown_session
        if shown is not None and shown.ref in (summary.ref, summary.parent_ref):
            self.schedule_reload()

    def _set_sync_status(self, text: str) -> None:
        self.sync_status = text
        self.update_status()

    # --- actions on the current session -------------------------------------------------------------------

    @property
    def current_session(self) -> SessionSummary | None:
        """Return the session that actions apply to: the shown one, or the selected one in the list."""
        if self.transcript.has_focus and self.shown_session is not None:
            return self.shown_session
        return self.list_model.find(self.sessions.selected_ref or "") or self.shown_session

    def action_copy(self) -> None:
        """Copy the message under the cursor; in the list, the ref of the session."""
        block = self.transcript.current_block
        if not self.transcript.has_focus or block is None:
            self.action_copy_ref()
            return
        lines = [line for line, _ in block.body or ()] or [block.heading]
        self._copy_text("\n".join(lines), pluralize(len(lines), "line"))

    def action_copy_ref(self) -> None:
        """Copy the ref of the session."""
        if (summary := self.current_session) is not None:
            self._copy_text(summary.ref, summary.ref)

    def _copy_text(self, text: str, description: str) -> None:
        self.copy_to_clipboard(text)
        _copy_with_program(text)
        self.show_notice(f"Copied {description}.")

    def action_resume(self) -> None:
        """Resume the session in its own tool, then return to the UI."""
        if (summary := self.current_session) is not None:
            self.run_in_worker("list", lambda history: history.resume.plan(summary.ref), self._resume)

    def _resume(self, plan: "Resumption") -> None:
        command = plan.command
        if command is None or plan.obstacle is not None:
            hint = f" The command would be: {command.shell_line}" if command is not None else ""
            reason = (plan.obstacle or "This session cannot be resumed").removesuffix(".")
            self.show_notice(f"{reason}.{hint}", is_warning=True)
            return
        if not plan.is_installed:
            self.show_notice(command.missing_program, is_warning=True)
            return
        try:
            with self.suspend():
                outcome = _run_in_foreground(command)
        except SuspendNotSupported:
            self.show_notice(
                f"The UI cannot be suspended. Run this in another terminal: {command.shell_line}"
            )
            return
        program = command.argv[0]
        if isinstance(outcome, OSError):
            reason = f"Cannot run {program}: {outcome.strerror or outcome}."
            self.show_notice(f"{reason} To try it yourself, run: {command.shell_line}", is_warning=True)
        elif outcome != 0:
            reason = f"exited with code {outcome}" if outcome > 0 else f"was ended by signal {-outcome}"
            hint = f"To see its messages, run: {command.shell_line}"
            self.show_notice(f"{program} {reason}. {hint}", is_warning=True)
        self.refresh()

    def action_export(self) -> None:
        """Export the session to a file."""
        summary = self.current_session
        if summary is None:
            return

        def write(path: str, is_forced: bool) -> None:
            target, format_ = Path(path), format_of_file(path)
            with suppress(RuntimeError):  # no such user
                target = target.expanduser()
            if format_ is None:
                endings = ", ".join(f".{one}" for one in FORMATS)
                dialog.show_error(f"Unknown format. End the file name with one of {endings}.")
                return

            def export(history: History) -> Path:
                chunks = history.export_session(summary.ref, format_)
                return history.exports.write_file(chunks, target, force=is_forced)

            def show_failure(error: BackscrollError | OSError) -> None:
                if isinstance(error, SessionNotFoundError) or not dialog.is_attached:
                    close()
                    self.show_error(error)
                    return
                can_replace = target.is_file() and not target.is_symlink() and not is_forced
                reason = error.reason if isinstance(error, BackscrollError) else str(error)
                dialog.show_error(reason, existing_path=path if can_replace else None)

            def show_written(written: Path) -> None:
                close()
                self.show_notice(f"Wrote {written}")

            self.run_in_worker("write", export, show_written, on_error=show_failure)

        def close() -> None:
            if dialog.is_attached:
                dialog.dismiss(None)

        dialog = ExportDialog(file_name(summary), write)
        self.push_screen(dialog)

    def action_toggle_star(self) -> None:
        """Add or remove the star of the session."""
        summary = self.current_session
        if summary is not None:
            is_starred = not summary.is_starred
            self.run_in_worker(
                "write",
                lambda history: history.annotations.star(summary.ref, is_starred),
                self._annotations_changed,
            )

    def action_edit_tags(self) -> None:
        """Edit the tags of the session."""
        summary = self.current_session
        if summary is None:
            return

        def save(text: str | None) -> None:
            if text is None:
                return
            tags = [tag.lstrip("#").lower() for tag in text.replace(",", " ").split()]
            removed: Sequence[str] = [tag for tag in summary.tags if tag not in tags]
            self.run_in_worker(
                "write",
                lambda history: history.annotations.tag(summary.ref, tags, remove=removed),
                self._annotations_changed,
            )

        hint = "Separate tags with spaces · Esc to cancel"
        self.push_screen(TextDialog("Tags of this session:", " ".join(summary.tags), hint), save)

    def _annotations_changed(self, summary: SessionSummary) -> None:
        self.list_model.update(summary)
        self.show_list()
        if self.shown_session is not None and self.shown_session.ref == summary.ref:
            self.reload_transcript()

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


def _run_in_foreground(command: "Command") -> OSError | int:
    """Run a program and wait for it. Return its exit code, or the error if it cannot be started.

    An exception must not leave `suspend`: the UI would stay suspended.
    """
    environ = {**os.environ, **command.environ}
    handler = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl+C is for the program, not for the UI
    try:
        return subprocess.run(command.argv, cwd=command.folder, env=environ, check=False).returncode
    except OSError as error:
        return error
    finally:
        signal.signal(signal.SIGINT, handler)


def _start_resource_tracker() -> None:
    """Start the tracker that worker processes need. Textual's stderr has no file descriptor for it."""
    from multiprocessing import resource_tracker

    with redirect_stderr(sys.__stderr__):
        # Quitting interrupts a sync. The tracker would warn about what the sync did not release.
        sys.warnoptions.append(IGNORE_TRACKER_WARNINGS)
        resource_tracker.ensure_running()
        sys.warnoptions.remove(IGNORE_TRACKER_WARNINGS)


def _copy_with_program(text: str) -> bool:
    """Copy the text with the first clipboard program that works. Return False if none does.

    Many terminals do not support OSC 52 or disable it.
    """
    for command in _clipboard_commands(os.environ):
        if shutil.which(command[0]) is None:
            continue
        try:
            subprocess.run(
                command,
                input=text.encode("utf-8", "replace"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=CLIPBOARD_TIMEOUT_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return True
    return False


def _clipboard_commands(environ: Mapping[str, str]) -> Iterator[list[str]]:
    """Yield the commands to try. Those that need a display are omitted without one."""
    if "TMUX" in environ:
        yield ["tmux", "load-buffer", "-w", "-"]
    if "WAYLAND_DISPLAY" in environ:
        yield ["wl-copy"]
    if "DISPLAY" in environ:
        yield ["xclip", "-selection", "clipboard"]
        yield ["xsel", "--clipboard", "--input"]
    yield ["pbcopy"]
    yield ["clip.exe"]
