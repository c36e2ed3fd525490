"""Start a command, with its global options.

A sync runs without click: importing it takes longer than a sync without changes.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.cli.messages import reopen_closed_streams, report_errors
from backscroll.config import named_roots, this_machine

if TYPE_CHECKING:
    from backscroll.history.history import History


def run_command(arguments: list[str]) -> None:
    """Run a command and exit with its code. An error is printed as one message."""
    reopen_closed_streams()
    try:
        with report_errors():
            _run(arguments)
    finally:
        gc.freeze()  # skips the collection at exit, which costs 5 % of a command


def _run(arguments: list[str]) -> None:
    is_completion = "_BACKSCROLL_COMPLETE" in os.environ
    if not is_completion and (parsed := parse_sync_arguments(arguments)) is not None:
        from backscroll.cli.sync import run_sync  # start-up: other commands do not need it

        setup, as_json = parsed
        sys.exit(run_sync(setup, as_json=as_json))
    try:
        import click  # noqa: F401
    except ImportError:
        from backscroll.cli.install_command import missing_extra_message  # only after an error

        sys.exit(missing_extra_message("The command line", "cli"))
    from backscroll.cli.app import run  # needs click, an optional dependency

    run()


def parse_sync_arguments(arguments: list[str]) -> tuple[Setup, bool] | None:
    """Parse ``[--home DIR] [--root SOURCE=DIR]... sync [--json]`` without click.

    Return the global options and the ``--json`` flag, or None for any other command line.
    """
    home: Path | None = None
    roots: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        name, equals, value = argument.partition("=")
        if name in ("--home", "--root"):
            value = value if equals else next(remaining, "")
            if not value or value.startswith("-"):
                return None
            if name == "--home":
                home = Path(value)
            else:
                roots.append(value)
        elif argument == "sync":
            options = list(remaining)
            return (Setup(home, tuple(roots)), bool(options)) if options in ([], ["--json"]) else None
        else:
            return None
    return None


class Setup:
    """Values of the global options."""

    def __init__(self, home: Path | None, roots: tuple[str, ...], backup: Path | None = None) -> None:
        self.home = home
        self.roots = roots
        self.backup = backup  # read this backup instead of the archive
        self.last_history: History | None = None  # returned by `history`, may be closed
        self.no_sync = False  # use the archive as it is
        self.no_wait = False  # answer before a long sync is complete, also in a pipe
        self._has_warned = False

    def history(self) -> History:
        """Return a `History` for the options. On the first call, print warnings about roots and settings."""
        from backscroll.history.history import History  # start-up time: --help does not need it

        machine = this_machine()
        roots = named_roots(self.roots, machine)
        history = History(roots=roots, home=self.home, machine=machine)
        if self.backup is not None:
            history = history.open_backup(self.backup)
        self.last_history = history
        if self._has_warned:
            return history
        self._has_warned = True
        for name in history.settings.unknown:
            file = history.archive_path.with_name("config.toml")
            sys.stderr.write(f"Warning: unknown setting {name!r} in {file}.\n")
        for root in roots:
            if not os.path.isdir(root.path):  # noqa: PTH112 - Path.is_dir raises without permission
                state = "is not a folder" if os.path.exists(root.path) else "does not exist"  # noqa: PTH110
                sys.stderr.write(f"Warning: the root {root.source}={root.path} {state}.\n")
        return history
