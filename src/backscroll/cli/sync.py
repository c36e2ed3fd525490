"""``backscroll sync``: read what changed into the archive."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from backscroll.cli.app import Setup
from backscroll.cli.progress import Bar

if TYPE_CHECKING:
    from backscroll.ingest.sync import Synced
    from backscroll.model import Retention
    from backscroll.model.ledger import Ledger

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
        assert report is not None
        now = datetime.now(UTC)
        path = history.archive_path
        retentions = history.retentions(now)
        ledger = history.ledger(now - RECENTLY)
        if not report.roots and not as_json:
            from backscroll.cli.welcome import welcome_lines  # here and below: what is not said is not loaded

            click.echo("\n".join(welcome_lines(history)))
    if as_json:
        sys.stdout.buffer.write(_document(report, str(path), retentions, ledger))
    elif report.roots:
        click.echo("\n".join(_lines(report, retentions, ledger, now)))
    sys.exit(3 if report.problems else 0)


def _document(report: Synced, path: str, retentions: list[Retention], ledger: Ledger) -> bytes:
    import msgspec

    from backscroll.render.documents import encoded
    from backscroll.render.ledger import ledger_document

    expiring = [msgspec.structs.asdict(one) for one in retentions]
    more = {"archive": path, "retention": expiring, "ledger": ledger_document(ledger)}
    return encoded(msgspec.structs.asdict(report) | more)


def _lines(report: Synced, retentions: list[Retention], ledger: Ledger, now: datetime) -> Iterator[str]:
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
    yield f"{report.units:,} units: {', '.join(told) or 'nothing new'}."
    if ledger.fates:
        from backscroll.render.ledger import ledger_line

        yield f"{ledger_line(ledger, now)}."
    if report.problems:
        yield f"{report.problems:,} problems; backscroll doctor names them."
    if retentions:
        from backscroll.render.expiry import expiry_lines

        for one in retentions:
            yield from expiry_lines(one)
