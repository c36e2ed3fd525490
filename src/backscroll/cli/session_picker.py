"""Choose a session at a terminal: a list, newest first, that is filtered while the user types.

Single keys are read on POSIX only. Elsewhere, the user types a number or words.
"""

import codecs
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import Any, NoReturn

import click

from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line
from backscroll.render.humanize import format_age
from backscroll.render.session_header import searchable_text
from backscroll.render.terminal_text import Style, cell_width, pad, truncate

MAX_ROWS = 12
MAX_TEXT_CHARS = 300
RESIZE_SECONDS = 0.3  # between two checks of the size of the terminal
ESCAPE_SECONDS = 0.05  # the rest of an escape sequence follows within this time
_WORKSPACE_WIDTH = 16
_READ_BYTES = 1024
_CLEAR_BELOW, _HIDE_CURSOR, _SHOW_CURSOR = "\x1b[J", "\x1b[?25l", "\x1b[?25h"
_KEY_HELP = "type to filter, ↑ ↓ to select, Enter to choose, Esc to cancel"
_SEQUENCES = {
    "[A": "up", "OA": "up", "[B": "down", "OB": "down", "[5~": "page up", "[6~": "page down",
    "[H": "home", "OH": "home", "[1~": "home", "[F": "end", "OF": "end", "[4~": "end",
}  # fmt: skip
_CONTROLS = {
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x03": "interrupt",
    "\x04": "cancel", "\x15": "clear", "\x17": "delete word", "\x10": "up", "\x0e": "down",
    "\x0b": "up", "\t": "down",
}  # fmt: skip


def is_interactive() -> bool:
    """Return whether the user can be asked. The list is printed on standard error."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def pick_session(sessions: Sequence[SessionSummary], question: str) -> SessionSummary | None:
    """Ask the user to choose a session. Return None if the user cancels.

    Raises `KeyboardInterrupt` on Ctrl-C. The terminal is as before in any case.
    """
    if _can_read_keys():
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
        self._texts = self._texts or [searchable_text(session) for session in self._sessions]
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
        with _open_keyboard() as keys:
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
        yield style("dim", truncate(f"{count} · {_KEY_HELP}", width))


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


def _can_read_keys() -> bool:
    """Return whether keys can be read from standard input one by one."""
    return os.name == "posix" and sys.stdin.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class _Keyboard:
    """Keys of a terminal in raw mode. A key is a printable character or a name such as ``page up``."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._decoder = codecs.getincrementaldecoder("utf-8")("ignore")

    def keys(self, timeout_seconds: float) -> list[str]:
        """Return the keys typed until now; none if nothing was typed before the timeout."""
        if not self._is_ready(timeout_seconds):
            return []
        data = os.read(self._descriptor, _READ_BYTES)
        if not data:
            return ["cancel"]  # the terminal was closed
        if data.endswith(b"\x1b") and self._is_ready(ESCAPE_SECONDS):
            data += os.read(self._descriptor, _READ_BYTES)
        return list(_parse_keys(self._decoder.decode(data)))

    def _is_ready(self, timeout_seconds: float) -> bool:
        import select

        return bool(select.select([self._descriptor], [], [], timeout_seconds)[0])


def _parse_keys(text: str) -> Iterator[str]:
    """Yield the keys in the input. Unknown sequences and control characters are dropped."""
    position = 0
    while position < len(text):
        if text[position] != "\x1b":
            key = text[position]
            position += 1
            name = _CONTROLS.get(key, key)
            if len(name) > 1 or name.isprintable():
                yield name
            continue
        end = _sequence_end(text, position + 1)
        if end == position + 1:
            yield "cancel"
        elif (name := _SEQUENCES.get(text[position + 1 : end], "")) != "":
            yield name
        position = end


def _sequence_end(text: str, start: int) -> int:
    """Return the end of an escape sequence whose first character after Escape is at ``start``."""
    if start >= len(text) or text[start] not in "[O":
        return start
    end = start + 1
    while end < len(text) and not "@" <= text[end] <= "~":
        end += 1
    return min(end + 1, len(text))


@contextmanager
def _open_keyboard() -> Iterator[_Keyboard]:
    """Put the terminal into raw mode: no echo, no line editing, no signals from keys.

    The previous mode is restored in any case, also if the process is asked to terminate.
    """
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    mode: list[Any] = termios.tcgetattr(descriptor)
    mode[0] &= ~(termios.IXON | termios.INLCR)
    mode[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        for number in handlers:
            signal.signal(number, _exit_on_signal)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
        yield _Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _exit_on_signal(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
