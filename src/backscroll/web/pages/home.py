"""The home page: recent sessions, figures and notices."""

from datetime import UTC, datetime, timedelta

from starlette.requests import Request
from starlette.responses import Response

from backscroll.history import History
from backscroll.render.events import events_line
from backscroll.web.figures.data import CACHE, cache_name
from backscroll.web.figures.query import FigureQuery
from backscroll.web.pages.demo import empty_archive
from backscroll.web.pages.figures import Figures
from backscroll.web.pages.health import expiring_sessions
from backscroll.web.templating import render

__all__ = ["home_page"]

RECENT_SESSIONS = 18  # narrow screens show fewer
MAX_INLINE_SESSIONS = 200  # with more, the figures are loaded after the page
_EVENT_DAYS = 30


def home_page(history: History, request: Request) -> Response:
    """Return the home page."""
    query = FigureQuery.parse(request.query_params)
    recent = history.list_sessions(limit=RECENT_SESSIONS)
    total = recent.pagination.total
    now = datetime.now(UTC)
    is_small = total <= MAX_INLINE_SESSIONS
    name = cache_name(query)
    data = CACHE.get(history, name) if is_small else CACHE.find_recent(history, name)
    return render(
        request,
        "home.html",
        recent=recent.data,
        total_sessions=total,
        live=history.live_sessions(),
        figures=Figures(history, data, query) if data is not None else None,
        figures_url=query.url("/figures"),
        events=events_line(history.events(now - timedelta(days=_EVENT_DAYS)), now),
        retentions=expiring_sessions(history),
        empty=empty_archive(history) if not recent.data else None,
    )
