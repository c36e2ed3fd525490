"""Read single keys from a terminal. POSIX only: `is_supported` is False elsewhere."""

import codecs
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

__all__ = ["Keyboard", "is_supported", "open_keyboard"]

ESCAPE_SECONDS = 0.05  # the rest of an escape sequence follows within this time
_READ_BYTES = 1024
_SEQUENCES = {
    "[A": "up", "OA": "up", "[B": "down", "OB": "down", "[5~": "page up", "[6~": "page down",
    "[H": "home", "OH": "home", "[1~": "home", "[F": "end", "OF": "end", "[4~": "end",
}  # fmt: skip
_CONTROLS = {
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x03": "interrupt",
    "\x04": "cancel", "\x15": "clear", "\x17": "delete word", "\x10": "up", "\x0e": "down",
    "\x0b": "up", "\t": "down",
}  # fmt: skip


def is_supported() -> bool:
    """Return whether keys can be read from standard input one by one."""
    return os.name == "posix" and sys.stdin.isatty() and os.environ.get("TERM", "dumb") != "dumb"


class Keyboard:
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
        return list(_parse(self._decoder.decode(data)))

    def _is_ready(self, timeout_seconds: float) -> bool:
        import select

        return bool(select.select([self._descriptor], [], [], timeout_seconds)[0])


def _parse(text: str) -> Iterator[str]:
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
def open_keyboard() -> Iterator[Keyboard]:
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
            signal.signal(number, _exit)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, mode)
        yield Keyboard(descriptor)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)
