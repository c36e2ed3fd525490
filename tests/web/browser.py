"""The system's Chromium for tests. Playwright never downloads one."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn
from playwright.sync_api import Browser, Page, Request, sync_playwright
from starlette.types import ASGIApp

__all__ = ["CHROMIUM", "BrowserPage", "open_browser", "open_page", "run_server"]

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


@contextmanager
def run_server(create: Callable[[], ASGIApp]) -> Iterator[str]:
    """Serve an app in a thread. Yield its address."""
    config = uvicorn.Config(create(), port=0, log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    listener = config.bind_socket()
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
        page.on("console", lambda message: self._note(message.type == "error", message.text))
        page.on("pageerror", lambda error: self._note(True, str(error)))
        page.on("dialog", lambda dialog: (self._note(True, "dialog"), dialog.dismiss()))
        page.on("request", self._check_request)

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
    """Open a page. Fail if it logs an error, shows a dialog or sends a request elsewhere."""
    context = browser.new_context(**{"viewport": {"width": 1360, "height": 900}, **options})
    context.set_default_timeout(TIMEOUT_MS)
    try:
        opened = BrowserPage(context.new_page(), address)
        yield opened
        assert not opened.problems
    finally:
        context.close()
