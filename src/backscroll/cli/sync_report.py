"""The result of a sync as text or JSON."""

from collections.abc import Iterator
from datetime import datetime

from backscroll.cli.messages import command_hint, irregular_lines, permission_lines, welcome_lines
from backscroll.history.history import History
from backscroll.model.problem import Problem
from backscroll.model.sync import EventLog, Retention, SyncReport
from backscroll.model.text import pluralize
from backscroll.render.json import encode_json
from backscroll.render.sync import events_document, events_line, retention_lines


def report_document(
    history: History,
    report: SyncReport,
    irregular: list[Problem],
    retentions: list[Retention],
    events: EventLog,
    now: datetime,
) -> bytes:
    """Return the result as a JSON document."""
    return encode_json(
        vars(report)
        | {
            "irregular": [problem.origin.path for problem in irregular],
            "archive": str(history.archive_path),
            "is_complete": history.is_complete,
            "retention": [retention._asdict() for retention in retentions],
            "ledger": events_document(events),
        }
    )


def report_text(
    history: History,
    report: SyncReport,
    irregular: list[Problem],
    retentions: list[Retention],
    events: EventLog,
    now: datetime,
) -> bytes:
    """Return the result as text for a user."""
    has_roots = report.roots or report.unreadable
    lines = _lines(report, irregular, retentions, events, now) if has_roots else welcome_lines(history)
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _lines(
    report: SyncReport,
    irregular: list[Problem],
    retentions: list[Retention],
    events: EventLog,
    now: datetime,
) -> Iterator[str]:
    changes = [
        f"{count:,} {change}"
        for count, change in (
            (report.new, "new"),
            (report.grew, "appended"),
            (report.rewritten, "rewritten"),
            (report.came_back, "restored"),
            (report.vanished, "deleted by the tool"),
            (report.hook_events, "from hooks"),
        )
        if count
    ]
    unchanged = "No changes." if report.problems else "Up to date."
    yield f"Synced: {', '.join(changes)}." if changes else unchanged
    if events.events:
        yield f"{events_line(events, now)}."
    yield from permission_lines(report.unreadable)
    yield from irregular_lines(irregular)
    if report.problems > len(report.unreadable) + len(irregular):
        problems = pluralize(report.problems, "problem")
        yield f"{problems} while reading. Run '{command_hint('doctor')}' for details."
    for retention in retentions:
        yield from retention_lines(retention)
