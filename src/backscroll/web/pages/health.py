"""Health: sources with their counts and problems, events, the archive and its backups."""

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from backscroll.errors import SessionNotFoundError, UsageError
from backscroll.history.history import History
from backscroll.model.problem import ENVIRONMENT_CODES
from backscroll.model.retention import Retention
from backscroll.model.session import SessionSummary
from backscroll.model.statistics import MonthGrowth
from backscroll.model.sync import SessionEvent
from backscroll.model.text import pluralize
from backscroll.render.backups import validation_lines
from backscroll.render.humanize import format_size
from backscroll.render.sync import events_line
from backscroll.web.charts import Bar, bar_chart
from backscroll.web.served_history import ResultCache, served_history
from backscroll.web.templating import render
from backscroll.web.urls import SessionQuery

GROWTH_AGE = timedelta(minutes=1)  # every stored original is counted
RETENTION_AGE = timedelta(minutes=10)  # every file of the tool is looked at
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
    backup = served_history(request).backup_job.state
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
        retentions=expiring_sessions(history),
        status=history.archive_admin.status(),
        growth=Growth(_GROWTH.get_recent(history, None)),
        running=history.background_sync.status(),
        backup=backup,
        verdict=list(validation_lines(validation)) if validation is not None else [],
        backup_folder=str(history.backups.folder),
        backups=history.backups.list(),
    )


class GrowthRow(NamedTuple):
    """A month in the table of the growth."""

    month: str
    url: str
    sessions: int
    messages: int
    added: int
    total: int


class Growth:
    """Size of the originals over time, as a chart and a table."""

    def __init__(self, months: Sequence[MonthGrowth]) -> None:
        known = {one.month: one for one in months if one.month is not None}
        self.other_bytes = sum(one.original_bytes for one in months if one.month is None)
        rows: list[GrowthRow] = []
        bars: list[Bar] = []
        total = 0
        for name in _months(known):
            one = known.get(name)
            added = one.original_bytes if one is not None else 0
            total += added
            url = SessionQuery().url(since=name, until=name) if one is not None else ""
            sessions, messages = (one.sessions, one.messages) if one is not None else (0, 0)
            rows.append(GrowthRow(name, url, sessions, messages, added, total))
            title = (
                f"{name}: {format_size(total)} in total, {format_size(added)} added,"
                f" {pluralize(sessions, 'session')}, {pluralize(messages, 'message')}"
            )
            bars.append(Bar(f"{date.fromisoformat(f'{name}-01'):%b %Y}", total, title, url))
        self.rows = rows[::-1]
        self.chart: Markup | None = None
        if bars:
            label = "Size of the originals by month"
            self.chart = bar_chart(bars, label, format_value=lambda value: format_size(int(value)))


def _months(known: Collection[str]) -> Iterator[str]:
    """Yield every month from the first known one to the last."""
    if not known:
        return
    day = date.fromisoformat(f"{min(known)}-01")
    while (name := f"{day:%Y-%m}") <= max(known):
        yield name
        day = (day + timedelta(days=32)).replace(day=1)


def _find_growth(history: History, name: None, now: datetime) -> list[MonthGrowth]:
    return history.archive_admin.growth()


_GROWTH = ResultCache(_find_growth, GROWTH_AGE)


def _find_retentions(history: History, name: None, now: datetime) -> list[Retention]:
    return [one for one in history.retentions(now) if one.expiring]


_RETENTIONS = ResultCache(_find_retentions, RETENTION_AGE)


def expiring_sessions(history: History) -> list[Retention]:
    """Return what the tools will delete soon, as of at most ten minutes ago."""
    return _RETENTIONS.get_recent(history, None)


def start_backup(history: History, request: Request, form: dict[str, str]) -> Response:
    """Start a backup, unless one is running, and return to the page."""
    if form.get("action") != "backup":
        raise UsageError(f"{form.get('action', '')!r} is not an action.")
    served_history(request).backup_job.start()
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
