"""Actions on a session (resume, export, copy, star, tag), and the sync in the background."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from backscroll.errors import BackscrollError, SessionNotFoundError
from backscroll.history.history import History
from backscroll.model.export import FORMATS, Format
from backscroll.model.session import SessionSummary
from backscroll.model.sync import SyncStatus
from backscroll.model.text import pluralize
from backscroll.render.humanize import format_remaining
from backscroll.render.session_header import file_name
from backscroll.tui.dialogs import ExportDialog, TextDialog
from backscroll.tui.session_list_panel import SessionListApp

if TYPE_CHECKING:
    from backscroll.model.resume import Command, Resumption


PermissionLines = Callable[[Sequence[str]], Iterable[str]]  # returns a message about unreadable paths
SYNCING = "syncing"
IGNORE_TRACKER_WARNINGS = "ignore:resource_tracker:UserWarning"
PROGRESS_INTERVAL_SECONDS = 0.1
LIST_RELOAD_INTERVAL_SECONDS = 3.0  # during a sync
FIRST_RELOAD_INTERVAL_SECONDS = 0.5  # the same, while the list is empty
CLIPBOARD_TIMEOUT_SECONDS = 2.0


class SessionActionsApp(SessionListApp):
    """An app with actions on the current session."""

    auto_sync = True
    permission_lines: PermissionLines = staticmethod(lambda _: ())
    sync_status = ""  # progress or outcome, for the status line
    is_watching = False  # the first sync is complete; changes are followed live
    _last_progress_time = 0.0
    _last_reload_time = 0.0

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

    # --- the current session ------------------------------------------------------------------------------

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
            target, format_ = Path(path), _format_of(path)
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


def _format_of(path: str) -> Format | None:
    """Return the export format of a file name, or None if it is unknown."""
    return next((one for one in FORMATS if Path(path).suffix == f".{one}"), None)


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
