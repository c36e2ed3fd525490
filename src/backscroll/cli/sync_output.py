"""Run a sync and print its result. Does not import click, to keep `sync` fast."""

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

RECENT_EVENTS = timedelta(days=7)  # older session events are not reported


def run_sync(setup: Setup, *, as_json: bool) -> int:
    """Sync, print the result and return the exit code."""
    with setup.history() as history, ProgressBar("Syncing") as bar:
        report = history.sync(bar.step)
        assert report is not None
        now = datetime.now(UTC)
        path = history.archive_path
        retentions = history.retentions(now)
        events = history.events(now - RECENT_EVENTS)
        lines = list(_lines(report, retentions, events, now)) if report.roots else []
        if not lines and not as_json:
            from backscroll.cli.hints import welcome_lines  # start-up time, here and below

            lines += welcome_lines(history)
    if as_json:
        sys.stdout.buffer.write(_document(report, str(path), retentions, events))
    else:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    return 3 if report.problems else 0


def _document(report: SyncReport, path: str, retentions: list[Retention], events: EventLog) -> bytes:
    from backscroll.render.events import events_document
    from backscroll.render.json import encode_json

    return encode_json(
        vars(report)
        | {
            "archive": path,
            "retention": [retention._asdict() for retention in retentions],
            "ledger": events_document(events),
        }
    )


def _lines(report: SyncReport, retentions: list[Retention], events: EventLog, now: datetime) -> Iterator[str]:
    changes = [
        f"{count:,} {change}"
        for count, change in (
            (report.new, "new"),
            (report.grew, "appended"),
            (report.rewritten, "rewritten"),
            (report.came_back, "restored"),
            (report.vanished, "deleted by the tool"),
        )
        if count
    ]
    yield f"Synced: {', '.join(changes)}." if changes else "Up to date."
    if events.events:
        from backscroll.render.events import events_line

        yield f"{events_line(events, now)}."
    if report.problems:
        from backscroll.cli.hints import command_hint
        from backscroll.render.terminal.humanize import pluralize

        problems = pluralize(report.problems, "problem")
        yield f"{problems} while reading. Run '{command_hint('doctor')}' for details."
    if retentions:
        from backscroll.render.retention import retention_lines

        for retention in retentions:
            yield from retention_lines(retention)
