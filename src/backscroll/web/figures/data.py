"""Numbers of a time range, computed when the archive has changed."""

from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from backscroll.history import History
from backscroll.model import Filter, SessionSummary
from backscroll.model.statistics import Breakdown
from backscroll.web.figures.query import RANGES, STACKS, TOPS, FigureQuery
from backscroll.web.serving.result_cache import ResultCache

__all__ = ["CACHE", "FigureData", "cache_name", "compute_figures"]

MAX_AGE = timedelta(minutes=1)
TOP_SESSIONS = 8
MAX_GROUPS = 5  # of a bar; all others are one part
MAX_FILES = 8
_CALENDAR_DAYS = 53 * 7


class FigureData(NamedTuple):
    """Numbers of a time range."""

    since: datetime | None
    today: date
    breakdown: Breakdown
    days: dict[date, int]
    tops: dict[str, tuple[SessionSummary, ...]]


class FigureName(NamedTuple):
    """Time range and filters of the numbers."""

    range: str
    source: str
    workspace: str


def cache_name(query: FigureQuery) -> FigureName:
    """Return what determines the numbers of a query."""
    return FigureName(query.range, query.source, query.workspace)


def compute_figures(history: History, name: FigureName, now: datetime) -> FigureData:
    """Return the numbers of a time range."""
    range_name, source, workspace = name
    _, days, period = RANGES[range_name]
    today = now.astimezone().date()
    since = _midnight(today - timedelta(days=days - 1)) if days is not None else None
    filter_ = Filter(since=since, source=source or None, workspace=workspace or None)
    breakdown = history.statistics.breakdown(
        filter_,
        period=period,
        by=("source", "workspace", "model", "tool"),
        stacked_by=list(STACKS),
        max_groups=MAX_GROUPS,
        max_files=MAX_FILES,
    )
    has_sessions = breakdown.reports[period].total.sessions > 0  # not if the source is unknown
    calendar_since = _midnight(today - timedelta(days=_CALENDAR_DAYS))
    by_day = history.statistics.report(
        Filter(since=calendar_since, source=filter_.source, workspace=filter_.workspace), by="day"
    )
    return FigureData(
        since=since,
        today=today,
        breakdown=breakdown,
        days={date.fromisoformat(row.key): row.messages or 0 for row in by_day.rows if row.key},
        tops={
            key: history.list_sessions(filter_, limit=TOP_SESSIONS, sort=sort).data if has_sessions else ()
            for key, (_, sort) in TOPS.items()
        },
    )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time()).astimezone()


CACHE = ResultCache(compute_figures, MAX_AGE)
