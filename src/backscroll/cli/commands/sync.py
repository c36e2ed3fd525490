"""``backscroll sync``: read new and changed history into the archive."""

import sys

import click

from backscroll.cli.global_options import Setup
from backscroll.cli.sync_output import run_sync

__all__ = ["command"]


@click.command("sync")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(setup: Setup, as_json: bool) -> None:
    """Read new and changed history into the archive.

    Sessions that a tool deletes or overwrites stay in the archive. Prints how many were deleted or
    overwritten in the last 7 days. Exit code 3: some records could not be read.

    \b
    Examples:
      backscroll sync
    """
    sys.exit(run_sync(setup, as_json=as_json))
