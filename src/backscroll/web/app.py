"""Routes and middleware of the web app."""

import hmac
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from backscroll.history import History
from backscroll.http_guard import Guard, is_loopback_host, token_cookie
from backscroll.render.html.highlighting import highlight_code
from backscroll.render.html.markdown import markdown_to_html
from backscroll.web.api.openapi import API_PATH, openapi_document
from backscroll.web.api.operations import OPERATIONS, run_operation
from backscroll.web.errors import HANDLERS, error_document, error_page, refusal_response
from backscroll.web.headers import SecurityHeaders
from backscroll.web.page_facts import PageFacts, page_facts
from backscroll.web.pages.annotations import annotate, read_form
from backscroll.web.pages.commits import commit_page, commits_page
from backscroll.web.pages.demo import change_demo
from backscroll.web.pages.figures import figures_page
from backscroll.web.pages.files import file_page
from backscroll.web.pages.health import health_page, start_backup
from backscroll.web.pages.home import home_page
from backscroll.web.pages.journal import journal_page
from backscroll.web.pages.launch import LAUNCH_PATH, launch
from backscroll.web.pages.palette import palette_suggestions
from backscroll.web.pages.records import export_file, highlighted_message, image_file, record_page
from backscroll.web.pages.search import facets_page, search_page
from backscroll.web.pages.session import minimap_part, prompts_page, session_page, window_part
from backscroll.web.pages.sessions import sessions_page
from backscroll.web.serving.renderers import LOAD_DELAY_SECONDS, Renderers
from backscroll.web.serving.served_history import Histories, HistorySelector, served_history
from backscroll.web.serving.workers import OpenedHistory
from backscroll.web.static_files import static_file
from backscroll.web.templating import compile_template

__all__ = ["create_app", "load_modules", "render_page"]

_Handler = Callable[[History, Request], Response]
_Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


def create_app(
    open_history: Callable[[], History],
    token: str,
    *,
    is_own_host: Callable[[str], bool] = is_loopback_host,
    is_reading_open: bool = True,
    auto_sync: bool = True,
    renderers: Renderers | None = None,
) -> ASGIApp:
    """Return the app. With ``auto_sync``, it keeps the archive up to date while it runs.

    The ``renderers`` render the pages that cost most. Without them, threads do.
    """
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
    app.state.renderers = renderers
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
    return SecurityHeaders(guard)


def render_page(name: str, opened: OpenedHistory, request: Request) -> Response:
    """Render a page in another process than the server's. An error becomes a page."""
    try:
        return opened.run(lambda history: RENDERED_PAGES[name](history, request))
    except Exception as error:  # noqa: BLE001 - as Starlette does in the process of the server
        return error_page(request, error)


# Pages that take long to render and are requested often.
RENDERED_PAGES: Mapping[str, _Handler] = {
    handler.__name__: handler
    for handler in (
        search_page,
        facets_page,
        session_page,
        window_part,
        minimap_part,
        prompts_page,
        highlighted_message,
    )
}


def _is_rendered(request: Request, facts: PageFacts) -> bool:
    """Return whether a page is rendered in another process. A search for a pattern takes up to 10 s."""
    return not facts.is_demo and request.query_params.get("mode", "words") == "words"


async def _load_modules_later(histories: Histories) -> None:
    await anyio.sleep(LOAD_DELAY_SECONDS)
    await histories.choose(is_demo=False).workers.run(load_modules)


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
        name = getattr(handler, "__name__", "")

        async def endpoint(request: Request) -> Response:
            facts = page_facts(request)  # before the handler reads the history
            renderers: Renderers | None = request.app.state.renderers
            if renderers is not None and name in RENDERED_PAGES and _is_rendered(request, facts):
                response = await renderers.render(name, request, facts)
                if response is not None:
                    return response
            return await served_history(request).workers.run(lambda history: handler(history, request))

        return endpoint

    def change(handler: Callable[[History, Request, dict[str, str]], Response]) -> _Endpoint:
        async def endpoint(request: Request) -> Response:
            form = await read_form(request)
            workers = served_history(request).workers
            return await workers.run(lambda history: handler(history, request, form))

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
        Route(LAUNCH_PATH, launch),
    ]


async def _description(request: Request) -> Response:
    return JSONResponse(openapi_document())


async def _unknown_operation(request: Request) -> Response:
    return error_document(404, f"Unknown path. {API_PATH}/openapi.json describes the API.")


def _can_write(token: str, request: Request) -> bool:
    """Return whether the browser has the token."""
    given = request.cookies.get(token_cookie(request.scope["server"][1]), "")
    return hmac.compare_digest(given.encode(), token.encode())
