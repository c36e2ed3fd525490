"""The web app: start and end, security headers, the token of a browser. Its pages are in `routes`."""

import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import anyio
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backscroll.history.history import History
from backscroll.http_guard import Guard, is_loopback_host, token_cookie
from backscroll.render.html.highlighting import highlight_code
from backscroll.render.html.markdown import markdown_to_html
from backscroll.web.errors import HANDLERS, refusal_response
from backscroll.web.routes import routes
from backscroll.web.served_history import Histories, HistorySelector
from backscroll.web.templating import compile_template

LAUNCH_PATH = "/launch"
LOAD_DELAY_SECONDS = 1.0  # lets the first page be rendered first
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

    app = Starlette(
        routes=[*routes(), Route(LAUNCH_PATH, _launch)], exception_handlers=HANDLERS, lifespan=lifespan
    )
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
