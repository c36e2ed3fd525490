"""Choose a session at a terminal: a list, newest first, that is filtered while the user types."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click

from backscroll.cli import keyboard
from backscroll.model import SessionSummary
from backscroll.model.text import one_line
from backscroll.render.terminal.humanize import format_age
from backscroll.render.terminal.style import Style
from backscroll.render.terminal.width import cell_width, pad, truncate

__all__ = ["Picker", "is_interactive", "pick_session"]

MAX_ROWS = 12
MAX_TEXT_CHARS = 300
RESIZE_SECONDS = 0.3  # between two checks of the size of the terminal
_WORKSPACE_WIDTH = 16
_CLEAR_BELOW, _HIDE_CURSOR, _SHOW_CURSOR = "\x1b[J", "\x1b[?25l", "\x1b[?25h"
_KEYS = "type to filter, ↑ ↓ to select, Enter to choose, Esc to cancel"


def is_interactive() -> bool:
    """Return whether the user can be asked. The list is printed on standard error."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def pick_session(sessions: Sequence[SessionSummary], question: str) -> SessionSummary | None:
    """Ask the user to choose a session. Return None if the user cancels.

    Raises `KeyboardInterrupt` on Ctrl-C. The terminal is as before in any case.
    """
    if keyboard.is_supported():
        return _Screen(Picker(sessions), question).run()
    return _prompt(Picker(sessions), question)


class Picker:
    """Sessions that match what was typed, and the selected one."""

    def __init__(self, sessions: Sequence[SessionSummary]) -> None:
        self.query = ""
        self.selected = 0  # position in `matches`
        self._sessions = sessions
        self._texts: list[str] = []  # searchable text of each session
        self.matches = list(sessions)

    @property
    def choice(self) -> SessionSummary | None:
        return self.matches[self.selected] if self.matches else None

    def filter(self, query: str) -> None:
        """Show the sessions that contain all words, in any case."""
        self.query = query
        self.selected = 0
        self._texts = self._texts or [_searchable_text(session) for session in self._sessions]
        words = query.casefold().split()
        self.matches = [
            session
            for session, text in zip(self._sessions, self._texts, strict=True)
            if all(word in text for word in words)
        ]

    def move(self, distance: int) -> None:
        """Select another session. The selection stops at both ends."""
        self.selected = max(0, min(self.selected + distance, len(self.matches) - 1))

    def press(self, key: str, rows: int) -> None:
        """Change the query or the selection. ``rows`` is the height of the list."""
        match key:
            case "up" | "down":
                self.move(-1 if key == "up" else 1)
            case "page up" | "page down":
                self.move(-rows if key == "page up" else rows)
            case "home" | "end":
                self.move(-len(self.matches) if key == "home" else len(self.matches))
            case "backspace":
                self.filter(self.query[:-1])
            case "delete word":
                self.filter(self.query.rstrip().rpartition(" ")[0])
            case "clear":
                self.filter("")
            case _ if len(key) == 1:
                self.filter(self.query + key)

    def visible(self, rows: int) -> range:
        """Return the positions to show, with the selection among them."""
        start = max(0, min(self.selected - rows // 2, len(self.matches) - rows))
        return range(start, min(start + rows, len(self.matches)))


def _searchable_text(session: SessionSummary) -> str:
    parts = (
        session.title,
        session.workspace_name,
        session.source,
        session.id,
        session.git_branch,
        session.first_message_preview,
        " ".join(f"#{tag}" for tag in session.tags),
    )
    return "\n".join(part for part in parts if part).casefold()


class _Screen:
    """Draws the picker below the cursor and reads keys. Nothing of it remains at the end."""

    def __init__(self, picker: Picker, question: str) -> None:
        self._picker = picker
        self._question = question
        self._style = Style(is_colored=not os.environ.get("NO_COLOR"))
        self._now = datetime.now(UTC)
        self._size = shutil.get_terminal_size()

    def run(self) -> SessionSummary | None:
        """Return the session that the user chooses; None if the user cancels."""
        with keyboard.open_keyboard() as keys:
            _write(_HIDE_CURSOR)
            try:
                self._draw()
                while True:
                    typed = keys.keys(RESIZE_SECONDS)
                    for key in typed:
                        if key == "interrupt":
                            raise KeyboardInterrupt
                        if key == "cancel":
                            return None
                        if key == "enter":
                            if self._picker.choice is not None:
                                return self._picker.choice
                            continue
                        self._picker.press(key, self._rows)
                    if typed or self._is_resized():
                        self._draw()
            finally:
                _write(f"\r{_CLEAR_BELOW}{_SHOW_CURSOR}")

    @property
    def _rows(self) -> int:
        return max(1, min(MAX_ROWS, self._size.lines - 4))

    def _is_resized(self) -> bool:
        before, self._size = self._size, shutil.get_terminal_size()
        return before != self._size

    def _draw(self) -> None:
        """Draw all lines and move the cursor back to the first one."""
        lines = list(self._lines())
        _write(f"\r{_CLEAR_BELOW}" + "\n".join(lines) + f"\r\x1b[{len(lines) - 1}A")

    def _lines(self) -> Iterator[str]:
        picker, style, width = self._picker, self._style, self._size.columns - 1
        yield style("title", truncate(self._question, width))
        yield f"> {truncate(picker.query, width - 3)}█"
        for position in picker.visible(self._rows):
            row = _row(picker.matches[position], self._now, width - 2)
            is_selected = position == picker.selected
            yield style("accent", f"> {row}") if is_selected else f"  {row}"
        if not picker.matches:
            yield "  No sessions match."
        count = f"{picker.selected + 1 if picker.matches else 0} of {len(picker.matches):,}"
        yield style("dim", truncate(f"{count} · {_KEYS}", width))


def _row(session: SessionSummary, now: datetime, width: int) -> str:
    """Return a session in one line: age, workspace, source and title."""
    age = format_age(session.updated_at, now).removesuffix(" ago")
    columns = [
        pad(age, 8, is_right=True),
        pad(one_line(session.workspace_name or "-", MAX_TEXT_CHARS), _WORKSPACE_WIDTH),
        pad(session.source, 11),
    ]
    title = one_line(session.title or session.first_message_preview or "(untitled)", MAX_TEXT_CHARS)
    gone = " [gone]" if session.is_gone else ""
    left = "  ".join(columns if width >= 70 else columns[:1])
    return f"{left}  {truncate(title, width - cell_width(left) - len(gone) - 2)}{gone}"


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _prompt(picker: Picker, question: str) -> SessionSummary | None:
    """Ask with numbered lines, on a terminal that cannot move the cursor."""
    now = datetime.now(UTC)
    click.echo(question, err=True)
    while True:
        shown = picker.matches[:MAX_ROWS]
        for number, session in enumerate(shown, start=1):
            click.echo(f"{number:>4}  {_row(session, now, shutil.get_terminal_size().columns - 7)}", err=True)
        if len(picker.matches) > len(shown):
            click.echo(f"      {len(picker.matches) - len(shown):,} more", err=True)
        answer = click.prompt(
            "Number, or words to filter (empty to cancel)", default="", show_default=False, err=True
        ).strip()
        if not answer:
            return None
        if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(shown):
            return shown[int(answer) - 1]
        picker.filter(answer)
        if not picker.matches:
            click.echo("No sessions match.", err=True)
            picker.filter("")
