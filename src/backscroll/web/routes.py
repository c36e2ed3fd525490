"""The routes of the web app.

A page is a handler in ``pages/``, a file in ``templates/`` and a line here; ``templates/base.html`` has the
navigation, ``static/palette.js`` the pages of the command palette.

A page is made by a worker thread, which passes the history that the browser has chosen.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.web.api import API_PATH, OPERATIONS, openapi_document, run_operation
from backscroll.web.errors import error_document
from backscroll.web.pages.figures import figures_page
from backscroll.web.pages.health import health_page, start_backup
from backscroll.web.pages.home import change_demo, home_page
from backscroll.web.pages.palette import palette_suggestions
from backscroll.web.pages.repository import commit_page, commits_page, file_page, journal_page
from backscroll.web.pages.search import facets_page, search_page
from backscroll.web.pages.session import (
    annotate,
    export_file,
    highlighted_message,
    image_file,
    minimap_part,
    prompts_page,
    record_page,
    session_page,
    window_part,
)
from backscroll.web.pages.sessions import sessions_page
from backscroll.web.served_history import served_history
from backscroll.web.templating import page_facts, static_file

MAX_FORM_BYTES = 64 * 1024

_Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


def routes() -> list[Route]:
    """Return all routes, except the one that gives a browser the token."""
    return [
        Route("/", _page(home_page)),
        Route("/commits", _page(commits_page)),
        Route("/commits/{sha}", _page(commit_page)),
        Route("/demo", _change(change_demo), methods=["POST"]),
        Route("/figures", _page(figures_page)),
        Route("/files", _page(file_page)),
        Route("/health", _page(health_page)),
        Route("/health", _change(start_backup), methods=["POST"]),
        Route("/journal", _page(journal_page)),
        Route("/palette", _page(palette_suggestions)),
        Route("/search", _page(search_page)),
        Route("/search/facets", _page(facets_page)),
        Route("/sessions", _page(sessions_page)),
        Route("/sessions/{ref}", _page(session_page)),
        Route("/sessions/{ref}", _change(annotate), methods=["POST"]),
        Route("/sessions/{ref}/window", _page(window_part)),
        Route("/sessions/{ref}/minimap", _page(minimap_part)),
        Route("/sessions/{ref}/prompts", _page(prompts_page)),
        Route("/sessions/{ref}/messages/{message}", _page(record_page)),
        Route("/sessions/{ref}/messages/{message}/highlighted", _page(highlighted_message)),
        Route("/sessions/{ref}/messages/{message}/images/{number:int}", _page(image_file)),
        Route("/sessions/{ref}/export.{format}", export_file),
        *(Route(API_PATH + one.path, _page(partial(run_operation, one))) for one in OPERATIONS),
        Route(f"{API_PATH}/openapi.json", _description),
        Route("/api/{path:path}", _unknown_operation),
        Route("/events", _events),
        Route("/static/{version}/{name}", static_file),
    ]


def _page(handler: Callable[[History, Request], Response]) -> _Endpoint:
    """Return the endpoint of a page: it runs the handler in a worker thread."""

    async def endpoint(request: Request) -> Response:
        page_facts(request)  # before the handler reads the history
        return await served_history(request).answer(request, lambda history: handler(history, request))

    return endpoint


def _change(handler: Callable[[History, Request, dict[str, str]], Response]) -> _Endpoint:
    """Return the endpoint of a form: it runs the handler with the fields in a worker thread."""

    async def endpoint(request: Request) -> Response:
        form = await _read_form(request)
        return await served_history(request).run(lambda history: handler(history, request, form))

    return endpoint


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form. Raises `UsageError` if it is too large or not a form."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise UsageError("The text is too long.")
    try:
        fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=20)
    except ValueError as error:
        raise UsageError("The form is not valid.") from error
    return {name: values[-1] for name, values in fields.items()}


async def _description(request: Request) -> Response:
    return JSONResponse(openapi_document())


async def _unknown_operation(request: Request) -> Response:
    return error_document(404, f"Unknown path. {API_PATH}/openapi.json describes the API.")


async def _events(request: Request) -> Response:
    return await served_history(request).feed.endpoint(request)
