"""Command-line interface: parse arguments, call `History`, print.

app.py                 all commands, global options, lazy loading of commands
command_group.py       groups of commands with suggestions for unknown names
global_options.py      global options and the `History` they configure
commands/              one module per command
options.py             options that several commands share
completion_values.py   values that shell completion offers
hints.py               commands named in messages
install_command.py     how to install an optional dependency
error_output.py        errors as messages and exit codes
progress.py  terminal.py  session_output.py  sync_output.py  sync_report.py   output
session_picker.py  keyboard.py   choose a session from a list
launch.py              start another program
"""

import gc
import os
import sys

from backscroll import __version__

__all__ = ["main"]

GC_THRESHOLD = 50_000  # the default of 700 costs 10 % of a command


def main() -> None:
    """Run the ``backscroll`` command."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        sys.stdout.write(f"backscroll {__version__}\n")
        return
    gc.set_threshold(GC_THRESHOLD, 20, 20)
    from backscroll.cli.error_output import (
        reopen_closed_streams,
        report_errors,
    )  # start-up: not for --version

    reopen_closed_streams()
    try:
        with report_errors():
            _run(arguments)
    finally:
        gc.freeze()  # skips the collection at exit, which costs 5 % of a command


def _run(arguments: list[str]) -> None:
    from backscroll.cli.global_options import parse_sync_arguments  # start-up: not for --version

    # Importing click takes longer than a sync without changes.
    is_completion = "_BACKSCROLL_COMPLETE" in os.environ
    if not is_completion and (parsed := parse_sync_arguments(arguments)) is not None:
        from backscroll.cli.sync_output import run_sync  # start-up: other commands do not need it

        setup, as_json = parsed
        sys.exit(run_sync(setup, as_json=as_json))
    try:
        import click  # noqa: F401
    except ImportError:
        from backscroll.cli.install_command import missing_extra_message  # only after an error

        sys.exit(missing_extra_message("The command line", "cli"))
    from backscroll.cli.app import run  # needs click, an optional dependency

    run()
