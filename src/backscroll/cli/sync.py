"""Run a sync and print its result. Does not import click, to keep `sync` fast."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from backscroll.cli.progress import ProgressBar
from backscroll.history.web_server import is_served

if TYPE_CHECKING:
    from backscroll.cli.startup import Setup


SERVED_NICENESS = 10  # while the web app serves the archive
RECENT_EVENTS = timedelta(days=7)  # older session events are not reported


def run_sync(setup: Setup, *, as_json: bool) -> int:
    """Sync, print the result and return the exit code."""
    with setup.history() as history, ProgressBar("Syncing") as bar:
        if is_served(history.archive_path):
            _lower_priority()
        report = history.sync(bar.step)
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
        is_unchanged = report.roots and not (report.changed or report.vanished or report.problems)
        if is_unchanged and not (events.events or retentions or as_json):
            output = b"Up to date.\n"
        else:
            from backscroll.cli.sync_report import report_document, report_text  # start-up: not if up to date

            write = report_document if as_json else report_text
            output = write(history, report, irregular, retentions, events, now)
    sys.stdout.buffer.write(output)
    sys.stdout.flush()
    return 3 if report.problems else 0


def _lower_priority() -> None:
    """Let the web app answer first. The priority of a process cannot be raised again."""
    if hasattr(os, "nice"):
        os.nice(SERVED_NICENESS)
