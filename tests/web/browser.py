"""The system's Chromium for tests. Playwright never downloads one."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn
from playwright.sync_api import Browser, Page, Request, ViewportSize, sync_playwright
from starlette.types import ASGIApp

from backscroll.web.server import LOOPBACK, listen

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
TIMEOUT_MS = 15_000
_VIEWPORT: ViewportSize = {"width": 1360, "height": 900}
_idle_pages: dict[tuple[Browser, str], list[Page]] = {}  # by the options of their context


@contextmanager
def run_server(create: Callable[[], ASGIApp]) -> Iterator[str]:
    """Serve an app in a thread. Yield its address."""
    config, listener = listen(create(), LOOPBACK, 0)
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def open_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class BrowserPage:
    """A page, and everything that must not happen in it."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.problems: list[str] = []
        self._handlers: dict[str, Callable[..., object]] = {
            "console": lambda message: self._note(message.type == "error", message.text),
            "pageerror": lambda error: self._note(True, str(error)),
            "dialog": lambda dialog: (self._note(True, "dialog"), dialog.dismiss()),
            "request": self._check_request,
        }
        for event, handler in self._handlers.items():
            page.on(event, handler)  # type: ignore[call-overload]

    def release(self) -> None:
        """Stop watching the page."""
        for event, handler in self._handlers.items():
            self.page.remove_listener(event, handler)

    def _note(self, is_problem: bool, text: str) -> None:
        if is_problem:
            self.problems.append(text)

    def _check_request(self, request: Request) -> None:
        # Not with `Page.route`, which disables the cache of the browser.
        if not request.url.startswith((self.address, "data:")):
            self.problems.append(f"request to {request.url}")

    def open(self, path: str) -> Page:
        self.page.goto(self.address + path)
        return self.page

    def wait_for_scripts(self) -> None:
        """Wait until the page reacts to keys."""
        self.page.locator("#theme").wait_for()


@contextmanager
def open_page(browser: Browser, address: str, **options: Any) -> Iterator[BrowserPage]:
    """Open an empty page. Fail if it logs an error, shows a dialog or sends a request elsewhere.

    Tests share pages, because a new one costs 0.9 seconds of CPU time. A test that failed closes its page.
    """
    viewport = options.pop("viewport", _VIEWPORT)
    color_scheme = options.pop("color_scheme", "light")
    idle = _idle_pages.setdefault((browser, repr(options)), [])
    page = idle.pop() if idle else _new_page(browser, **options)
    is_reset = False
    try:
        page.set_viewport_size(viewport)
        page.emulate_media(color_scheme=color_scheme, media="null")
        opened = BrowserPage(page, address)
        yield opened
        assert not opened.problems, opened.problems
        opened.release()
        _reset(page, address)
        idle.append(page)
        is_reset = True
    finally:
        if not is_reset:
            page.context.close()


def _new_page(browser: Browser, **options: Any) -> Page:
    context = browser.new_context(**options)
    context.set_default_timeout(TIMEOUT_MS)
    return context.new_page()


def _reset(page: Page, address: str) -> None:
    """Leave the address, and delete its routes and what it has stored in the browser."""
    page.unroute_all()
    for other in page.context.pages:
        if other is not page:
            other.close()
    page.goto("about:blank")
    page.mouse.move(0, 0)
    page.context.clear_cookies()
    session = page.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": address, "storageTypes": "all"})
    session.detach()
