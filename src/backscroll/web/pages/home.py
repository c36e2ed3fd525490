"""The home page: recent sessions, activity, charts and notices."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from threading import Lock
from typing import NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import UsageError
from backscroll.history import History
from backscroll.model import Filter
from backscroll.model.statistics import By, Report, Sums
from backscroll.model.text import one_line, pluralize
from backscroll.render.events import events_line
from backscroll.render.terminal.humanize import compact_number, format_cost
from backscroll.web.charts import Bar, bar_chart, calendar_chart, hour_chart, share_bar
from backscroll.web.session_query import SessionQuery
from backscroll.web.templating import render

__all__ = ["figures_page", "home_page"]

RECENT_SESSIONS = 8
MAX_INLINE_SESSIONS = 200  # with more, the figures are loaded after the page
MAX_AGE = timedelta(minutes=1)
_MAX_ROWS = 8
_CALENDAR_DAYS = 53 * 7
_EVENT_DAYS = 30
_RANGES: dict[str, tuple[str, int | None, By]] = {  # label, days, period of the bars
    "30d": ("30 days", 30, "day"),
    "90d": ("90 days", 90, "day"),
    "year": ("Year", 365, "week"),
    "all": ("All", None, "month"),
}
DEFAULT_RANGE = "year"


class Row(NamedTuple):
    """A row of a table with a bar."""

    label: str
    title: str
    url: str
    bar: Markup
    values: list[str]


class Table(NamedTuple):
    """Figures by source, workspace, model or tool."""

    title: str
    columns: list[str]
    rows: list[Row]
    more: list[Row]


class Figures(NamedTuple):
    """Charts and sums of a time range."""

    total: Sums
    prices_checked: date
    uncounted_sessions: int
    calendar: Markup
    hours: Markup
    bars: Markup
    bar_rows: list[Bar]
    tables: list[Table]


def home_page(history: History, request: Request) -> Response:
    """Return the home page."""
    name = _range_name(request)
    recent = history.list_sessions(limit=RECENT_SESSIONS)
    now = datetime.now(UTC)
    return render(
        request,
        "home.html",
        recent=recent.data,
        total_sessions=recent.pagination.total,
        live=history.live_sessions(),
        figures=_cache.get(history, name, now, can_wait=recent.pagination.total <= MAX_INLINE_SESSIONS),
        figures_url=f"/figures?range={name}",
        ranges=_range_links(name),
        events=events_line(history.events(now - timedelta(days=_EVENT_DAYS)), now),
        retentions=[one for one in history.retentions(now) if one.expiring],
        roots=[(source.name, str(path)) for source, path in history.roots()] if not recent.data else [],
        denied=history.unreadable_paths() if not recent.data else [],
        has_sessions=bool(recent.data),
    )


def figures_page(history: History, request: Request) -> Response:
    """Return only the figures. The home page of a large archive loads them after everything else."""
    name = _range_name(request)
    figures = _cache.get(history, name, datetime.now(UTC), can_wait=True)
    return render(request, "figures_page.html", figures=figures, ranges=_range_links(name))


def _range_name(request: Request) -> str:
    name = request.query_params.get("range", DEFAULT_RANGE)
    if name not in _RANGES:
        raise UsageError(f"{name!r} is not a time range. Use one of: {', '.join(_RANGES)}.")
    return name


def _range_links(name: str) -> list[tuple[str, str, bool]]:
    """Return label, address and whether it is the current one, of each time range."""
    return [
        (label, "/" if key == DEFAULT_RANGE else f"/?range={key}", key == name)
        for key, (label, _, _) in _RANGES.items()
    ]


class _FiguresCache:
    """The last figures of each time range.

    They are computed again when the archive or the date has changed, but at most once a minute for a large
    archive.
    """

    def __init__(self) -> None:
        self._figures: dict[tuple[str, str], tuple[object, datetime, Figures]] = {}
        self._lock = Lock()

    def get(self, history: History, name: str, now: datetime, *, can_wait: bool) -> Figures | None:
        """Return the figures; None if they must be computed and the caller cannot wait."""
        key = str(history.archive_path), name
        state = (_archive_state(history), now.astimezone().date())
        with self._lock:
            known = self._figures.get(key)
        if known is not None and (known[0] == state or (not can_wait and now - known[1] < MAX_AGE)):
            return known[2]
        if not can_wait:
            return None
        figures = _figures(history, name, now)
        with self._lock:
            self._figures[key] = state, now, figures
        return figures


_cache = _FiguresCache()


def _archive_state(history: History) -> tuple[tuple[int, int], ...]:
    found = []
    for suffix in ("", "-wal"):
        path = history.archive_path.with_name(history.archive_path.name + suffix)
        try:
            stat = path.stat()
        except OSError:
            continue
        found.append((stat.st_mtime_ns, stat.st_size))
    return tuple(found)


def _figures(history: History, name: str, now: datetime) -> Figures:
    _, days, period = _RANGES[name]
    today = now.astimezone().date()
    since = _midnight(today - timedelta(days=days - 1)) if days is not None else None
    reports = history.statistics.reports(
        Filter(since=since), by=(period, "source", "workspace", "model", "tool")
    )
    calendar_since = _midnight(today - timedelta(days=_CALENDAR_DAYS))
    by_day = history.statistics.report(Filter(since=calendar_since), by="day")
    counts = {date.fromisoformat(row.key): row.messages or 0 for row in by_day.rows if row.key}
    bars = _bars(reports[period], period, since, today)
    return Figures(
        total=reports[period].total,
        prices_checked=reports[period].prices_checked,
        uncounted_sessions=reports[period].uncounted_sessions,
        calendar=calendar_chart(counts, today, _day_url),
        hours=hour_chart(history.statistics.messages_by_hour(Filter(since=since))),
        bars=bar_chart(bars, f"Messages by {period}"),
        bar_rows=[bar for bar in reversed(bars) if bar.value],
        tables=[
            _table("Sources", reports["source"].rows, _activity_columns, _source_url),
            _table("Workspaces", reports["workspace"].rows, _activity_columns, _workspace_url),
            _table("Models", reports["model"].rows, _model_columns, _model_url),
            _table("Tools", reports["tool"].rows, _tool_columns, _no_url),
        ],
    )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time()).astimezone()


def _bars(report: Report, period: By, since: datetime | None, today: date) -> list[Bar]:
    """Return one bar per day, week or month, also for those without messages."""
    known = {row.key: row for row in report.rows if row.key is not None}
    first = _first_day(known, period, today)
    first = max(since.date(), first) if since is not None else first
    names: dict[str, date] = {}
    day = first
    while day <= today:
        names.setdefault(_period_name(day, period), day)
        day += timedelta(days=1 if period != "month" else 20)
    names.setdefault(_period_name(today, period), today)
    return [_bar(name, day, known.get(name), period) for name, day in names.items()]


def _first_day(known: dict[str, Sums], period: By, today: date) -> date:
    """Return the first day of the first period with messages."""
    suffix = {"day": "", "week": "-1", "month": "-01"}[period]
    return min((date.fromisoformat(name + suffix) for name in known), default=today)


def _period_name(day: date, period: By) -> str:
    return day.strftime({"day": "%Y-%m-%d", "week": "%G-W%V", "month": "%Y-%m"}[period])


def _bar(name: str, day: date, row: Sums | None, period: By) -> Bar:
    messages = (row.messages or 0) if row is not None else 0
    label = f"{day:%b %Y}" if period == "month" else f"{day.day} {day:%b}"
    title = f"{name}: {pluralize(messages, 'message')}"
    if row is not None:
        title += f", {pluralize(row.sessions, 'session')}, {pluralize(row.prompts or 0, 'prompt')}"
        if row.tokens is not None:
            title += f", {compact_number(row.tokens.total)} tokens"
        if cost := format_cost(row):
            title += f", {cost}"
    return Bar(label, messages, title, SessionQuery(since=name, until=name).url() if messages else "")


def _day_url(day: date) -> str:
    return SessionQuery(since=day.isoformat(), until=day.isoformat()).url()


Columns = Callable[[Sums | None], tuple[list[str], float]]  # values of a row, and the length of its bar


def _activity_columns(row: Sums | None) -> tuple[list[str], float]:
    if row is None:
        return ["Sessions", "Messages", "Lines", "Cost"], 0
    lines = (
        f"+{row.lines_added or 0:,} −{row.lines_removed or 0:,}"
        if row.lines_added or row.lines_removed
        else ""
    )
    return [f"{row.sessions:,}", f"{row.messages or 0:,}", lines, format_cost(row)], row.messages or 0


def _model_columns(row: Sums | None) -> tuple[list[str], float]:
    if row is None:
        return ["Sessions", "Tokens", "Cost"], 0
    total = row.tokens.total if row.tokens is not None else 0
    tokens = compact_number(total) if row.tokens is not None else ""
    return [f"{row.sessions:,}", tokens, format_cost(row)], total


def _tool_columns(row: Sums | None) -> tuple[list[str], float]:
    if row is None:
        return ["Calls", "Failed"], 0
    failures = f"{row.tool_failures:,}" if row.tool_failures else ""
    return [f"{row.tool_calls or 0:,}", failures], row.tool_calls or 0


def _table(title: str, sums: Sequence[Sums], columns: Columns, url: Callable[[str], str]) -> Table:
    ranked = sorted((row for row in sums if row.key is not None), key=lambda row: -columns(row)[1])
    highest = max((columns(row)[1] for row in ranked), default=0)
    rows = []
    for row in ranked:
        key = row.key or ""
        values, length = columns(row)
        rows.append(Row(_short(key), key, url(key), share_bar(length, highest), values))
    return Table(title, columns(None)[0], rows[:_MAX_ROWS], rows[_MAX_ROWS:])


def _short(name: str) -> str:
    """Return the last part of a path; any other name as it is."""
    is_path = name.startswith(("/", "\\")) or name[1:3] in (":\\", ":/")
    return one_line(name.replace("\\", "/").rstrip("/").rpartition("/")[2] or name if is_path else name, 60)


def _source_url(name: str) -> str:
    return SessionQuery(source=name).url()


def _workspace_url(name: str) -> str:
    return SessionQuery(workspace=name).url()


def _model_url(name: str) -> str:
    return SessionQuery(model=name).url()


def _no_url(name: str) -> str:
    return ""
