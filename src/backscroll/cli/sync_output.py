"""What ``backscroll sync`` does and says; here, so that nobody waits for what reads command lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from backscroll.cli.progress import ProgressBar

if TYPE_CHECKING:
    from backscroll.cli.setup import Setup
    from backscroll.model import Retention
    from backscroll.model.events import EventLog
    from backscroll.model.sync_report import SyncReport

__all__ = ["RECENT_EVENTS", "run_sync"]

RECENT_EVENTS = timedelta(days=7)  # what became of sessions is said for so long


def run_sync(setup: Setup, *, as_json: bool) -> int:
    """Read what changed, say what that was, and return the exit code."""
    with setup.history() as history, ProgressBar("Reading") as bar:
        report = history.sync(bar.step)
        assert report is not None
        now = datetime.now(UTC)
        path = history.archive_path
        retentions = history.retentions(now)
        ledger = history.ledger(now - RECENT_EVENTS)
        lines = list(_lines(report, retentions, ledger, now)) if report.roots else []
        if not lines and not as_json:
            from backscroll.cli.hints import welcome_lines  # here and below: what is not said is not loaded

            lines += welcome_lines(history)
    if as_json:
        sys.stdout.buffer.write(_document(report, str(path), retentions, ledger))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    return 3 if report.problems else 0


def _document(report: SyncReport, path: str, retentions: list[Retention], ledger: EventLog) -> bytes:
    from backscroll.render.events import events_document
    from backscroll.render.json import encode_json

    expiring = [one._asdict() for one in retentions]
    more = {"archive": path, "retention": expiring, "ledger": events_document(ledger)}
    return encode_json(vars(report) | more)


def _lines(report: SyncReport, retentions: list[Retention], ledger: EventLog, now: datetime) -> Iterator[str]:
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
        from backscroll.render.events import events_line

        yield f"{events_line(ledger, now)}."
    if report.problems:
        from backscroll.render.terminal.humanize import pluralize

        them = "it" if report.problems == 1 else "them"
        yield f"{pluralize(report.problems, 'problem')}; backscroll doctor names {them}."
    if retentions:
        from backscroll.render.retention import retention_lines

        for one in retentions:
            yield from retention_lines(one)
