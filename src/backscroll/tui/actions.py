"""What is done with a session: resumed, exported, copied, starred, tagged; and all kept up to date."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.tui.clipboard import copy
from backscroll.tui.session_list.panel import Listing

if TYPE_CHECKING:
    from backscroll.model.export_format import Format
    from backscroll.model.tool import Resumption

__all__ = ["Keeping"]

_SYNCING = "syncing"
_QUIET = "ignore:resource_tracker:UserWarning"
_BEAT = 0.1  # seconds between two looks at how far a sync has come
_GLANCE = 3.0  # seconds between two looks at what it has read


class Keeping(Listing):
    """An app that does things with the session that is chosen."""

    syncs = True  # whether what changed is read
    sync_state = ""  # how far a sync has come, or how it ended
    is_watching = False  # what was there is read, and what comes is
    _last_beat = 0.0
    _last_list = 0.0

    # --- up to date ---------------------------------------------------------------------------------------

    def start_sync(self) -> None:
        """Read what changed, and then go on reading what changes, for as long as the screen is there."""
        self._last_list = time.monotonic()
        self._state(_SYNCING)
        self.ask("sync", self._sync, lambda _: None)

    def _sync(self, history: History) -> None:
        if self.closing.is_set():
            return
        _prepare_workers()
        report = history.sync(self._step, wait=False)
        ended = "another process is syncing" if report is None else ""
        self.tell(lambda: self._synced(ended))
        for change in history.live.watch(self.closing):
            summary = change.session
            self.tell(lambda summary=summary: self._changed(summary))  # type: ignore[misc]
            if self.closing.is_set():
                return

    def _step(self, done: int, total: int) -> None:
        if self.closing.is_set():
            raise KeyboardInterrupt  # what was read so far is whole
        now = time.monotonic()
        if now - self._last_beat > _BEAT:
            self._last_beat = now
            share = f"{_SYNCING} {100 * done // total} %" if total else _SYNCING
            self.tell(lambda: self._progressed(share))

    def _progressed(self, share: str) -> None:
        """A first sync takes a while: what was read so far is shown meanwhile."""
        self._state(share)
        if time.monotonic() - self._last_list > _GLANCE:
            self._last_list = time.monotonic()
            self.relist()

    @property
    def is_syncing(self) -> bool:
        return self.syncs and not self.is_watching

    def _synced(self, ended: str) -> None:
        self.is_watching = True
        self._state(ended)
        self.relist()

    def _changed(self, summary: SessionSummary) -> None:
        """A session is held right now, or another one was found."""
        if summary.parent_ref is None and self.is_listed:
            self.shelf.change(summary)
            self.show_list()
        shown = self.read_summary
        if shown is not None and shown.ref in (summary.ref, summary.parent_ref):
            self.refresh_read_soon()

    def _state(self, text: str) -> None:
        self.sync_state = text
        self.tell_state()

    # --- the chosen session -------------------------------------------------------------------------------

    @property
    def chosen(self) -> SessionSummary | None:
        """The session that keys are meant for: the one that is read, or the one chosen in the list."""
        if self.transcript.has_focus and self.read_summary is not None:
            return self.read_summary
        return self.shelf.find(self.sessions.ref or "") or self.read_summary

    def action_copy(self) -> None:
        """Copy the message under the cursor, or the session's ref from the list."""
        block = self.transcript.current
        if not self.transcript.has_focus or block is None:
            self.action_copy_ref()
            return
        lines = [line for line, _ in block.body or ()] or [block.head]
        self._copied("\n".join(lines), "1 line" if len(lines) == 1 else f"{len(lines):,} lines")

    def action_copy_ref(self) -> None:
        """Copy the ref of the session."""
        if (summary := self.chosen) is not None:
            self._copied(summary.ref, summary.ref)

    def _copied(self, text: str, what: str) -> None:
        self.copy_to_clipboard(text)
        copy(text)
        self.say(f"Copied {what}.")

    def action_resume(self) -> None:
        """Continue the session in its own tool; the screen comes back afterwards."""
        if (summary := self.chosen) is not None:
            self.ask("list", lambda history: history.resume.plan(summary.ref), self._resume)

    def _resume(self, found: "Resumption") -> None:

        command = found.command
        if command is None or found.obstacle is not None:
            way = f" The command would be: {command.shell_line}" if command is not None else ""
            self.say(f"{found.obstacle or 'This session cannot be continued'}.{way}", is_trouble=True)
            return
        try:
            with self.suspend():
                environ = {**os.environ, **command.environ}
                subprocess.run(command.argv, cwd=command.folder, env=environ, check=False)
        except SuspendNotSupported:
            self.say(f"This terminal cannot be lent. Run this in another one: {command.shell_line}")
            return
        except OSError as error:
            self.say(f"{command.argv[0]} could not be run: {error.strerror}", is_trouble=True)
        self.refresh()

    def action_export(self) -> None:
        """Write the session into a file."""
        from backscroll.history.exports import file_name  # start-up: loads the renderers
        from backscroll.model.export_format import FORMATS
        from backscroll.tui.dialogs import Ask

        summary = self.chosen
        if summary is None:
            return
        name = file_name(summary)

        def write(path: str | None) -> None:
            if not path or not path.strip():
                return
            target = Path(path.strip()).expanduser()
            named: list[Format] = [one for one in FORMATS if target.suffix == f".{one}"]
            if not named:
                self.say(f"A file of a session ends with one of {', '.join(FORMATS)}.", is_trouble=True)
                return

            def work(history: History) -> Path:
                return history.exports.write_file(history.export_session(summary.ref, named[0]), target)

            self.ask("write", work, lambda done: self.say(f"Wrote {done}"))

        self.push_screen(
            Ask("Export to this file:", name, "md, html, json, jsonl or txt · Esc leaves it"), write
        )

    def action_star(self) -> None:
        """Give the session a star, or take it away."""
        summary = self.chosen
        if summary is not None:
            wanted = not summary.is_starred
            self.ask("write", lambda history: history.annotations.star(summary.ref, wanted), self._noted)

    def action_tag(self) -> None:
        """Change the tags of the session."""
        from backscroll.tui.dialogs import Ask

        summary = self.chosen
        if summary is None:
            return

        def write(text: str | None) -> None:
            if text is None:
                return
            wanted = [tag.lstrip("#").lower() for tag in text.replace(",", " ").split()]
            take: Sequence[str] = [tag for tag in summary.tags if tag not in wanted]
            self.ask(
                "write",
                lambda history: history.annotations.tag(summary.ref, wanted, remove=take),
                self._noted,
            )

        self.push_screen(
            Ask("Tags of this session:", " ".join(summary.tags), "words · Esc leaves them"), write
        )

    def _noted(self, summary: SessionSummary) -> None:
        self.shelf.change(summary)
        self.show_list()
        if self.read_summary is not None and self.read_summary.ref == summary.ref:
            self.refresh_read()


def _prepare_workers() -> None:
    """Let a sync start processes. They need the error stream's number, which the screen's own has not."""
    from multiprocessing import resource_tracker

    with redirect_stderr(sys.__stderr__):
        # When somebody quits, a sync is left where it is; that is no news.
        sys.warnoptions.append(_QUIET)
        resource_tracker.ensure_running()
        sys.warnoptions.remove(_QUIET)
