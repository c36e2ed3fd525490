"""``backscroll sync``: read what changed into the archive."""

import sys

import click
import msgspec

from backscroll.cli.app import Setup
from backscroll.cli.progress import Bar
from backscroll.render.documents import encoded
from backscroll.render.text import expiry_lines

__all__ = ["command"]


@click.command("sync")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(setup: Setup, as_json: bool) -> None:
    """Read what changed into the archive.

    What a tool has deleted or rewritten since the last time is kept. Exit code 3 means that something could
    not be read.

    Example:

        backscroll sync
    """
    with setup.history() as history, Bar("Reading") as bar:
        report = history.sync(bar.step)
        path = history.archive_path
        retentions = history.retentions()
    assert report is not None
    if as_json:
        expiring = [msgspec.structs.asdict(one) for one in retentions]
        sys.stdout.buffer.write(
            encoded(msgspec.structs.asdict(report) | {"archive": str(path), "retention": expiring})
        )
    elif not report.roots:
        click.echo("No history was found. backscroll doctor says which places were looked at.")
    else:
        told = [
            f"{number:,} {what}"
            for number, what in (
                (report.new, "new"),
                (report.grew, "grew"),
                (report.rewritten, "rewritten"),
                (report.came_back, "came back"),
                (report.vanished, "vanished, and kept"),
            )
            if number
        ]
        click.echo(f"{report.units:,} units: {', '.join(told) or 'nothing new'}.")
        if report.problems:
            click.echo(f"{report.problems:,} problems; backscroll doctor names them.")
        for one in retentions:
            click.echo("\n".join(expiry_lines(one)))
    sys.exit(3 if report.problems else 0)
