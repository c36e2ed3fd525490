"""Health: sources with their counts and problems, events, the archive and its backups."""

from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.history import History
from backscroll.model import SessionSummary
from backscroll.model.problem import ENVIRONMENT_CODES
from backscroll.model.sync import SessionEvent
from backscroll.render.backups import validation_lines
from backscroll.render.events import events_line
from backscroll.web.backup_job import BackupJob
from backscroll.web.templating import render

__all__ = ["health_page", "start_backup"]

MAX_PROBLEMS = 50
MAX_EVENTS = 20
EVENT_LABELS = {
    "vanished": "deleted by the tool, kept in the archive",
    "overwritten": "overwritten with an older version, both versions kept",
    "came_back": "came back",
}


def health_page(history: History, request: Request) -> Response:
    """Return the page. Everything comes from the archive; no file of a tool is read."""
    now = datetime.now(UTC)
    roots = history.source_files.counts()
    problem_count, problems = history.source_files.problems(MAX_PROBLEMS)
    log = history.events()
    job: BackupJob = request.app.state.backup_job
    backup = job.state
    validation = backup.validation if backup is not None else None
    return render(
        request,
        "health.html",
        roots=[root for root in roots if root.exists or root.units],
        missing=[root for root in roots if not root.exists and not root.units],
        problem_count=problem_count,
        problems=problems,
        unknown=[(root, name, count) for root in roots for name, count in root.unknown.items()],
        has_parse_problems=any(problem.code not in ENVIRONMENT_CODES for problem in problems),
        events_line=events_line(log, now),
        events=_recent_events(history, log.events[-MAX_EVENTS:]),
        event_count=len(log.events),
        retentions=[one for one in history.retentions(now) if one.expiring],
        status=history.archive_admin.status(),
        running=history.background_sync.status(),
        backup=backup,
        verdict=list(validation_lines(validation)) if validation is not None else [],
        backup_folder=str(history.backups.folder),
        backups=history.backups.list(),
    )


def start_backup(history: History, request: Request, form: dict[str, str]) -> Response:
    """Start a backup, unless one is running, and return to the page."""
    if form.get("action") != "backup":
        raise UsageError(f"{form.get('action', '')!r} is not an action.")
    job: BackupJob = request.app.state.backup_job
    job.start()
    return RedirectResponse("/health#backups", 303)


def _recent_events(
    history: History, events: tuple[SessionEvent, ...]
) -> list[tuple[SessionEvent, str, SessionSummary]]:
    """Return events with their label and session, newest first."""
    found = []
    for event in reversed(events):
        try:
            found.append((event, EVENT_LABELS[event.what], history.find(event.session_ref)))
        except SessionNotFoundError:
            continue  # forgotten by another process in the meantime
    return found
