"""Routes and middleware of the web app."""

import hmac
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import anyio
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.http_guard import Guard, is_loopback_host, token_cookie
from backscroll.render.html.highlighting import highlight_code
from backscroll.render.html.markdown import markdown_to_html
from backscroll.web.api import API_PATH, OPERATIONS, openapi_document, run_operation
from backscroll.web.errors import HANDLERS, error_document, refusal_response
from backscroll.web.pages.figures import figures_page
from backscroll.web.pages.health import health_page, start_backup
from backscroll.web.pages.home import change_demo, home_page
from backscroll.web.pages.palette import palette_suggestions
from backscroll.web.pages.records import export_file, highlighted_message, image_file, record_page
from backscroll.web.pages.repository import commit_page, commits_page, file_page, journal_page
from backscroll.web.pages.search import facets_page, search_page
from backscroll.web.pages.session import annotate, minimap_part, prompts_page, session_page, window_part
from backscroll.web.pages.sessions import sessions_page
from backscroll.web.served_history import Histories, HistorySelector, served_history
from backscroll.web.templating import compile_template, page_facts, static_file

LAUNCH_PATH = "/launch"
LOAD_DELAY_SECONDS = 1.0  # lets the first page be rendered first
MAX_FORM_BYTES = 64 * 1024
_CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer", browsers would send "Origin: null" with forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}

_Handler = Callable[[History, Request], Response]
_Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


def create_app(
    open_history: Callable[[], History],
    token: str,
    *,
    is_own_host: Callable[[str], bool] = is_loopback_host,
    is_reading_open: bool = True,
    auto_sync: bool = True,
) -> ASGIApp:
    """Return the app. With ``auto_sync``, it keeps the archive up to date while it runs."""
    histories = Histories(open_history, auto_sync=auto_sync)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        histories.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_load_modules_later, histories)
            yield
            tasks.cancel_scope.cancel()
        histories.close()

    app = Starlette(routes=_routes(), exception_handlers=HANDLERS, lifespan=lifespan)
    app.state.token = token
    app.state.histories = histories
    app.state.can_write = partial(_can_write, token)
    guard = Guard(
        HistorySelector(app, histories),
        token,
        is_own_host=is_own_host,
        has_cookie=True,
        is_reading_open=is_reading_open,
        open_paths=[LAUNCH_PATH],
        read_only_path="/api",
        error_response=refusal_response,
    )
    return _SecurityHeaders(guard)


async def _load_modules_later(histories: Histories) -> None:
    await anyio.sleep(LOAD_DELAY_SECONDS)
    await histories.choose(is_demo=False).run(load_modules)


def load_modules(history: History) -> None:
    """Load what the first pages would wait for: Markdown, highlighting, templates, search."""
    markdown_to_html("`x`")
    highlight_code("x", "python")
    compile_template("session.html")
    compile_template("search.html")
    history.filter_items("")
    _ = history.transcript, history.resume  # loaded on first use


def _routes() -> list[Route]:
    def page(handler: _Handler) -> _Endpoint:
        async def endpoint(request: Request) -> Response:
            page_facts(request)  # before the handler reads the history
            return await served_history(request).answer(request, lambda history: handler(history, request))

        return endpoint

    def change(handler: Callable[[History, Request, dict[str, str]], Response]) -> _Endpoint:
        async def endpoint(request: Request) -> Response:
            form = await _read_form(request)
            return await served_history(request).run(lambda history: handler(history, request, form))

        return endpoint

    async def events(request: Request) -> Response:
        return await served_history(request).feed.endpoint(request)

    return [
        Route("/", page(home_page)),
        Route("/commits", page(commits_page)),
        Route("/commits/{sha}", page(commit_page)),
        Route("/demo", change(change_demo), methods=["POST"]),
        Route("/figures", page(figures_page)),
        Route("/files", page(file_page)),
        Route("/health", page(health_page)),
        Route("/health", change(start_backup), methods=["POST"]),
        Route("/journal", page(journal_page)),
        Route("/palette", page(palette_suggestions)),
        Route("/search", page(search_page)),
        Route("/search/facets", page(facets_page)),
        Route("/sessions", page(sessions_page)),
        Route("/sessions/{ref}", page(session_page)),
        Route("/sessions/{ref}", change(annotate), methods=["POST"]),
        Route("/sessions/{ref}/window", page(window_part)),
        Route("/sessions/{ref}/minimap", page(minimap_part)),
        Route("/sessions/{ref}/prompts", page(prompts_page)),
        Route("/sessions/{ref}/messages/{message}", page(record_page)),
        Route("/sessions/{ref}/messages/{message}/highlighted", page(highlighted_message)),
        Route("/sessions/{ref}/messages/{message}/images/{number:int}", page(image_file)),
        Route("/sessions/{ref}/export.{format}", export_file),
        *(Route(API_PATH + one.path, page(partial(run_operation, one))) for one in OPERATIONS),
        Route(f"{API_PATH}/openapi.json", _description),
        Route("/api/{path:path}", _unknown_operation),
        Route("/events", events),
        Route("/static/{version}/{name}", static_file),
        Route(LAUNCH_PATH, _launch),
    ]


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


async def _launch(request: Request) -> Response:
    """Store the token in a cookie, so that this browser may write. Continue without it in the address."""
    given = request.query_params.get("token", "")
    token: str = request.app.state.token
    if not hmac.compare_digest(given.encode(), token.encode()):
        return PlainTextResponse("This address is not valid any more. Run 'backscroll serve' again.\n", 403)
    response = RedirectResponse("/", 303)
    port = request.scope["server"][1]
    response.set_cookie(token_cookie(port), token, httponly=True, samesite="strict", path="/")
    return response


def _can_write(token: str, request: Request) -> bool:
    """Return whether the browser has the token."""
    given = request.cookies.get(token_cookie(request.scope["server"][1]), "")
    return hmac.compare_digest(given.encode(), token.encode())


class _SecurityHeaders:
    """ASGI middleware that adds security headers. Pages are not cached, unless they say so."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "private, no-cache")
            await send(message)

        await self._app(scope, receive, send_with_headers)
