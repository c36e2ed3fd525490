"""The home page: recent sessions, figures and notices; for an empty archive, the demo."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.render.sync import events_line
from backscroll.web.pages.figures import CACHE, FigureQuery, Figures, cache_name
from backscroll.web.pages.health import expiring_sessions
from backscroll.web.served_history import Histories, demo_cookie
from backscroll.web.templating import render

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


class SearchedFolder(NamedTuple):
    """A folder in which a tool keeps its history."""

    source: str
    path: str
    state: str


def empty_archive(history: History) -> dict[str, Any]:
    """Return what the page of an empty archive shows: searched folders, and files without permission."""
    return {
        "roots": [
            SearchedFolder(source.name, str(path), _folder_state(path)) for source, path in history.roots()
        ],
        "denied": history.unreadable_paths(),
    }


def _folder_state(path: Path) -> str:
    try:
        if path.is_dir():
            return "found, without sessions"
        return "broken link" if path.is_symlink() else "not found"
    except OSError:
        return "cannot be read"


def change_demo(history: History, request: Request, form: dict[str, str]) -> Response:
    """Open the demo history in this browser, or return to the user's history."""
    histories: Histories = request.app.state.histories
    action = form.get("action", "")
    response = RedirectResponse("/", 303)
    cookie = demo_cookie(request.scope["server"][1])
    match action:
        case "open":
            histories.write_demo()
            response.set_cookie(cookie, "1", httponly=True, samesite="strict", path="/")
        case "leave":
            response.delete_cookie(cookie, httponly=True, samesite="strict", path="/")
        case _:
            raise UsageError(f"{action!r} is not an action.")
    return response
