"""``backscroll sync``: read what changed into the archive."""

import sys

import click

from backscroll.cli.setup import Setup
from backscroll.cli.sync_output import run_sync

__all__ = ["command"]


@click.command("sync")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(setup: Setup, as_json: bool) -> None:
    """Read what changed into the archive.

    What a tool has deleted or rewritten is kept, and what became of sessions within the last week is said.
    Exit code 3 means that something could not be read.

    Example:

        backscroll sync
    """
    sys.exit(run_sync(setup, as_json=as_json))
