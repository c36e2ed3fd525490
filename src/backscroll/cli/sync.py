"""``backscroll sync``: read what changed into the archive."""

import sys
from datetime import UTC, datetime, timedelta

import click
import msgspec

from backscroll.cli.app import Setup
from backscroll.cli.progress import Bar
from backscroll.cli.welcome import welcome_lines
from backscroll.render.documents import encoded
from backscroll.render.ledger import ledger_document, ledger_line
from backscroll.render.text import expiry_lines

__all__ = ["RECENTLY", "command"]

RECENTLY = timedelta(days=7)  # what became of sessions is said for so long


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
    with setup.history() as history, Bar("Reading") as bar:
        report = history.sync(bar.step)
        now = datetime.now(UTC)
        path = history.archive_path
        retentions = history.retentions(now)
        ledger = history.ledger(now - RECENTLY)
        welcome = [] if report is not None and report.roots else list(welcome_lines(history))
    assert report is not None
    if as_json:
        expiring = [msgspec.structs.asdict(one) for one in retentions]
        more = {"archive": str(path), "retention": expiring, "ledger": ledger_document(ledger)}
        sys.stdout.buffer.write(encoded(msgspec.structs.asdict(report) | more))
    elif welcome:
        click.echo("\n".join(welcome))
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
        if fates := ledger_line(ledger, now):
            click.echo(f"{fates}.")
        if report.problems:
            click.echo(f"{report.problems:,} problems; backscroll doctor names them.")
        for one in retentions:
            click.echo("\n".join(expiry_lines(one)))
    sys.exit(3 if report.problems else 0)
