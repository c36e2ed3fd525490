"""Start a command. A sync without changes runs without click, which takes longer to import."""

import gc
import os
import sys

from backscroll.cli.global_options import parse_sync_arguments
from backscroll.cli.output.errors import reopen_closed_streams, report_errors

__all__ = ["run_command"]


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
        from backscroll.cli.output.sync import run_sync  # start-up: other commands do not need it

        setup, as_json = parsed
        sys.exit(run_sync(setup, as_json=as_json))
    try:
        import click  # noqa: F401
    except ImportError:
        from backscroll.cli.install_command import missing_extra_message  # only after an error

        sys.exit(missing_extra_message("The command line", "cli"))
    from backscroll.cli.app import run  # needs click, an optional dependency

    run()
