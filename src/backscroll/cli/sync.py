"""Run a sync and print its result.

Does not import click, and loads what prints a result only if there is one: most syncs find no change.
"""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from backscroll.cli.messages import command_hint, irregular_lines, permission_lines, welcome_lines
from backscroll.cli.progress import ProgressBar
from backscroll.history.web_server import is_served
from backscroll.model.text import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backscroll.cli.startup import Setup
    from backscroll.history.history import History
    from backscroll.model.problem import Problem
    from backscroll.model.retention import Retention
    from backscroll.model.sync import EventLog, SyncReport


SERVED_NICENESS = 10  # while the web app serves the archive
RECENT_EVENTS = timedelta(days=7)  # older session events are not reported


def run_sync(setup: Setup, *, as_json: bool, full: bool = False) -> int:
    """Sync, print the result and return the exit code."""
    with setup.history() as history, ProgressBar("Syncing") as bar:
        if is_served(history.archive_path):
            _lower_priority()
        report = history.sync(bar.step, full=full)
        assert report is not None
        # Listing all folders again takes 5 µs per file: not if nothing changed.
        if report.changed or report.vanished or not report.units:
            irregular = history.source_files.irregular_files()
            report.problems += len(irregular)
        else:
            irregular = []
        now = datetime.now(UTC)
        retentions = history.retentions(now)
        events = history.events(now - RECENT_EVENTS)
        has_changes = report.changed or report.reread or report.vanished
        is_unchanged = report.roots and not (has_changes or report.problems)
        if is_unchanged and not (events.events or retentions or as_json):
            output = b"Up to date.\n"
        elif as_json:
            output = _document(history, report, irregular, retentions, events)
        else:
            has_roots = report.roots or report.unreadable
            lines = _lines(report, irregular, retentions, events) if has_roots else welcome_lines(history)
            output = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    sys.stdout.buffer.write(output)
    sys.stdout.flush()
    return 3 if report.problems else 0


def _lower_priority() -> None:
    """Let the web app answer first. The priority of a process cannot be raised again."""
    if hasattr(os, "nice"):
        os.nice(SERVED_NICENESS)


def _document(
    history: History,
    report: SyncReport,
    irregular: list[Problem],
    retentions: list[Retention],
    events: EventLog,
) -> bytes:
    from backscroll.render import json, sync  # start-up: not if up to date

    return json.encode_json(
        vars(report)
        | {
            "irregular": [problem.origin.path for problem in irregular],
            "archive": str(history.archive_path),
            "is_complete": history.is_complete,
            "retention": [retention._asdict() for retention in retentions],
            "ledger": sync.events_document(events),
        }
    )


def _lines(
    report: SyncReport, irregular: list[Problem], retentions: list[Retention], events: EventLog
) -> Iterator[str]:
    from backscroll.render.sync import events_line, retention_lines  # start-up: not if up to date

    changes = [
        f"{count:,} {change}"
        for count, change in (
            (report.new, "new"),
            (report.grew, "appended"),
            (report.rewritten, "rewritten"),
            (report.came_back, "restored"),
            (report.reread, "unchanged and read again"),
            (report.vanished, "deleted by the tool"),
            (report.hook_events, "from hooks"),
        )
        if count
    ]
    unchanged = "No changes." if report.problems else "Up to date."
    yield f"Synced: {', '.join(changes)}." if changes else unchanged
    if events.events:
        yield f"{events_line(events, datetime.now(UTC))}."
    yield from permission_lines(report.unreadable)
    yield from irregular_lines(irregular)
    if report.problems > len(report.unreadable) + len(irregular):
        problems = pluralize(report.problems, "problem")
        yield f"{problems} while reading. Run '{command_hint('doctor')}' for details."
    for retention in retentions:
        yield from retention_lines(retention)
