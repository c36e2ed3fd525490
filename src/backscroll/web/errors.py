"""Error pages."""

import sys
import traceback

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Scope

from backscroll.errors import (
    ArchiveError,
    BackscrollError,
    CommitNotFoundError,
    DataNotFoundError,
    RepositoryError,
    SessionNotFoundError,
    UsageError,
    WorkspaceNotFoundError,
)
from backscroll.render.json import encode_json
from backscroll.web.templating import render

_STATUS_CODES: tuple[tuple[type[BackscrollError], int, str], ...] = (
    (SessionNotFoundError, 404, "Session not found"),
    (CommitNotFoundError, 404, "Commit not found"),
    (RepositoryError, 404, "The repository cannot be read"),
    (WorkspaceNotFoundError, 404, "Workspace not found"),
    (DataNotFoundError, 404, "Not found"),
    (UsageError, 400, "Invalid request"),
    (ArchiveError, 503, "The archive is not available"),
)
_HTTP_TITLES = {404: "Page not found", 405: "Not allowed"}


def status_of(error: BackscrollError) -> tuple[int, str]:
    """Return the status code of an error, and a title."""
    for kind, status_code, title in _STATUS_CODES:
        if isinstance(error, kind):
            return status_code, title
    return 500, "Something failed"


async def _history_error(request: Request, error: Exception) -> Response:
    return error_page(request, error)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    title = _HTTP_TITLES.get(error.status_code, error.detail)
    response = _page(request, error.status_code, title, "")
    response.headers.update(error.headers or {})  # such as Allow
    return response


def refusal_response(scope: Scope, status: int, reason: str) -> Response:
    """Return the response to a request that is not allowed."""
    if is_api_path(scope["path"]):
        return error_document(status, reason)
    return PlainTextResponse(f"{reason}\n", status)


def is_api_path(path: str) -> bool:
    """Return whether errors at a path are documents, not pages."""
    return path.startswith("/api/")


def error_document(status: int, message: str) -> Response:
    """Return an error as JSON."""
    document = {"error": {"status": status, "message": message}}
    return Response(encode_json(document), status, media_type="application/json")


async def _unexpected_error(request: Request, error: Exception) -> Response:
    return error_page(request, error)


def error_page(request: Request, error: Exception) -> Response:
    """Return the page for an error of the history, or for an unexpected one."""
    if isinstance(error, BackscrollError):
        return _page(request, *status_of(error), error.reason)
    # The message may contain history. Print only the location.
    frame = traceback.extract_tb(error.__traceback__)[-1]
    location = f"{frame.name}, line {frame.lineno} of {frame.filename}"
    sys.stderr.write(f"backscroll serve: {type(error).__name__} in {location}\n")
    return _page(request, 500, "Something failed", f"Internal error ({type(error).__name__}).")


def _page(request: Request, status_code: int, title: str, message: str) -> Response:
    if is_api_path(request.url.path):
        return error_document(status_code, message or f"{title}.")
    return render(request, "error.html", status_code, title=title, message=message)


HANDLERS = {BackscrollError: _history_error, HTTPException: _http_error, Exception: _unexpected_error}
