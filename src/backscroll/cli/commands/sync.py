"""``backscroll sync``: read new and changed history into the archive."""

import sys

import click

from backscroll.cli.startup import Setup
from backscroll.cli.sync import run_sync


@click.command("sync")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--stop", is_flag=True, help="Stop the sync that runs in the background.")
@click.pass_obj
def command(setup: Setup, as_json: bool, stop: bool) -> None:
    """Read new and changed history into the archive.

    Sessions that a tool deletes or overwrites stay in the archive. Prints how many were deleted or
    overwritten in the last 7 days. If a sync is already running in the background, waits for it and shows its
    progress. Exit code 3: some records could not be read.

    \b
    Examples:
      backscroll sync
      backscroll sync --stop
    """
    if stop:
        with setup.history() as history:
            is_stopped = history.background_sync.stop()
        click.echo(
            "Stopped. What was read is saved; the next sync continues."
            if is_stopped
            else "No sync is running in the background."
        )
        return
    sys.exit(run_sync(setup, as_json=as_json))
