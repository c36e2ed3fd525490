"""Standard output: text for a terminal or a pipe, JSON documents; and confirmation by the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal

import click
from msgspec import Struct

from backscroll.cli.startup import Setup
from backscroll.errors import BackscrollError, UsageError
from backscroll.render.terminal_text import Style

if TYPE_CHECKING:
    from backscroll.config.settings_file import SettingsChange


Color = Literal["auto", "always", "never"]
BATCH_LINES = 200  # lines per write
color_option = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="When to use colors. 'auto': on a terminal, unless NO_COLOR is set.",
)


class Screen(Struct, frozen=True):
    """Properties of standard output."""

    width: int | None  # columns; None if not a terminal
    height: int
    is_colored: bool
    is_forced: bool = False  # --color always

    @property
    def style(self) -> Style:
        return Style(is_colored=self.is_colored)

    def write(self, lines: Iterable[str]) -> None:
        """Print the lines without a pager."""
        for batch in _batches(iter(lines)):
            sys.stdout.buffer.write(batch.encode("utf-8", "replace"))
        sys.stdout.flush()

    def write_notice(self, lines: Iterable[str]) -> None:
        """Print a message for people. In a pipe, standard output is for data only."""
        if self.width is None:
            click.echo("\n".join(lines), err=True)
        else:
            self.write(lines)

    def page(self, lines: Iterable[str]) -> None:
        """Print the lines, through a pager if they do not fit on the terminal.

        The iterator is consumed only as far as the pager reads.
        """
        if self.width is None:
            self.write(lines)
            return
        remaining = iter(lines)
        first = list(islice(remaining, self.height - 1))
        if len(first) < self.height - 1:
            self.write(first)
            return
        with _ignored_interrupts():
            click.echo_via_pager(_batches(chain(first, remaining)), color=True if self.is_forced else None)


def detect_screen(color: Color) -> Screen:
    """Return the properties of standard output."""
    is_terminal = sys.stdout.isatty()
    columns, lines = _terminal_size() if is_terminal else (0, 0)
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    is_colored = color == "always" or (color == "auto" and is_terminal and not is_plain)
    width = max(columns, 20) if is_terminal else None
    return Screen(width, max(lines, 5), is_colored, is_forced=color == "always")


def _terminal_size() -> tuple[int, int]:
    """Return columns and lines, as `shutil.get_terminal_size` does. Importing shutil takes 4 ms."""
    try:
        actual = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        actual = os.terminal_size((80, 24))
    columns, lines = (os.environ.get(name, "") for name in ("COLUMNS", "LINES"))
    return (
        int(columns) if columns.isdecimal() and int(columns) else actual.columns or 80,
        int(lines) if lines.isdecimal() and int(lines) else actual.lines or 24,
    )


@contextmanager
def _ignored_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C while a pager runs: the pager handles it. Quitting the pager ends the command."""
    import signal

    previous = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _batches(lines: Iterator[str]) -> Iterator[str]:
    while batch := list(islice(lines, BATCH_LINES)):
        yield "".join(f"{line}\n" for line in batch)


def confirm(question: str, *, yes: bool, has_dry_run: bool = True) -> None:
    """Ask at a terminal. Exits if the user declines. Raises `UsageError` without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        dry_run = ", or --dry-run to see the plan" if has_dry_run else ""
        raise UsageError(f"Not a terminal: pass --yes to confirm{dry_run}.")
    if not click.confirm(question, err=True):
        click.echo("Nothing was changed.", err=True)
        sys.exit(1)


def apply_settings_change(
    change: SettingsChange, question: str, *, yes: bool, dry_run: bool | None = None
) -> bool:
    """Show a change of a tool's settings, ask and apply it. Return False for a dry run."""
    click.echo(f"{change.path}:")
    for line in change.lines:
        click.echo(line)
    if dry_run:
        click.echo("Nothing was changed (dry run).")
        return False
    confirm(question, yes=yes, has_dry_run=dry_run is not None)
    backup = change.apply()
    click.echo(f"Wrote {change.path}" if change.after is not None else f"Deleted {change.path}")
    if backup is not None:
        click.echo(f"  backup: {backup}")
    return True


def write_json(document: dict[str, Any]) -> None:
    """Write one document. Its ``is_complete`` is false while a long sync is running."""
    from backscroll.render.json import encode_json  # start-up time: text output does not need it

    setup = click.get_current_context().find_object(Setup)
    assert setup is not None
    document = document | {"is_complete": _is_complete(setup)}
    sys.stdout.buffer.write(encode_json(document))


def _is_complete(setup: Setup) -> bool:
    try:
        with setup.last_history or setup.history() as history:
            return history.archive_path.exists() and history.is_complete
    except BackscrollError:
        return False  # the archive is damaged
