"""The empty archive: the folders that were searched, and the demo history."""

from pathlib import Path
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from backscroll.errors import UsageError
from backscroll.history import History
from backscroll.web.serving.served_history import Histories, demo_cookie

__all__ = ["change_demo", "empty_archive"]


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
