"""What standard output is: a terminal of some size, with or without colours, or a pipe."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, Literal, TypeVar

import click
from msgspec import Struct

__all__ = ["Screen", "coloured", "screen"]

F = TypeVar("F", bound=Callable[..., Any])
Colour = Literal["auto", "always", "never"]

_BATCH = 200  # lines that are written together


def coloured(command: F) -> F:
    """For commands that colour what they print."""
    return click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Colours; auto asks the terminal and NO_COLOR.",
    )(command)


class Screen(Struct, frozen=True):
    """Where lines go."""

    width: int | None  # columns; None when it is no terminal
    height: int
    is_coloured: bool
    is_forced: bool = False  # colours whatever reads them

    def write(self, lines: Iterable[str]) -> None:
        """The lines as they come."""
        for batch in _batches(iter(lines)):
            sys.stdout.buffer.write(batch.encode("utf-8", "replace"))
        sys.stdout.flush()

    def page(self, lines: Iterable[str]) -> None:
        """The lines, in a pager when they are more than fit; only what is looked at is asked for."""
        if self.width is None:
            self.write(lines)
            return
        rest = iter(lines)
        first = list(islice(rest, self.height - 1))
        if len(first) < self.height - 1:
            self.write(first)
            return
        with _unstoppable():
            click.echo_via_pager(_batches(chain(first, rest)), color=True if self.is_forced else None)


def screen(colour: Colour) -> Screen:
    """What standard output is."""
    import shutil

    is_terminal = sys.stdout.isatty()
    size = shutil.get_terminal_size()
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    is_coloured = colour == "always" or (colour == "auto" and is_terminal and not is_plain)
    width = max(size.columns, 20) if is_terminal else None
    return Screen(width, max(size.lines, 5), is_coloured, is_forced=colour == "always")


@contextmanager
def _unstoppable() -> Iterator[None]:
    """Meanwhile Ctrl-C is the pager's, which has a use for it; whoever leaves the pager ends the command."""
    import signal

    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _batches(lines: Iterator[str]) -> Iterator[str]:
    while batch := list(islice(lines, _BATCH)):
        yield "".join(f"{line}\n" for line in batch)
