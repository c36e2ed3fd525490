"""Slow searches for patterns do not block pages, and stop when nobody waits for them."""

import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import Any

import httpx2
import pytest
import re2
from playwright.sync_api import Browser, Page

from backscroll.history.history import History
from backscroll.model.search import SearchResult
from backscroll.web.app import create_app
from tests.web.browser import CHROMIUM, open_page, run_server
from tests.web.conftest import CLOCKS, TOKEN, OpenHistory

TIMEOUT_SECONDS = 20
MAX_PAGE_MS = 100
PAGES = ["/", "/sessions", "/search?q=clock", f"/sessions/{CLOCKS}", "/figures"]


class SlowSearch:
    """Replaces searches for patterns: each matches texts and reads the archive until it is interrupted."""

    def __init__(self, search: Any) -> None:
        self._search = search
        self._lock = Lock()
        self.running = 0
        self.most_running = 0
        self.queries: list[str] = []
        self.may_end = Event()

    def __call__(self, history: History, query: str, **options: Any) -> SearchResult:
        if options.get("pattern", "words") != "words":
            self._run(history, query)
        result: SearchResult = self._search(history, query, **options)
        return result

    def _run(self, history: History, query: str) -> None:
        with self._lock:
            self.queries.append(query)
            self.running += 1
            self.most_running = max(self.most_running, self.running)
        pattern, text = re2.compile("[a-q][^u-z]{13}x"), "the tide gauge was off by one hour " * 2_000
        end = time.monotonic() + TIMEOUT_SECONDS
        try:
            while not self.may_end.is_set() and time.monotonic() < end:
                pattern.search(text)
                list(history.get_session(CLOCKS).messages)
        finally:
            with self._lock:
                self.running -= 1

    def wait_until(self, running: int) -> None:
        """Wait until exactly this many searches run."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while self.running != running:
            assert time.monotonic() < end, self.running
            time.sleep(0.01)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowSearch:
    slow = SlowSearch(History.search_sessions)
    monkeypatch.setattr(History, "search_sessions", lambda *args, **options: slow(*args, **options))
    return slow


@pytest.fixture
def address(demo_history: OpenHistory, slow: SlowSearch) -> Iterator[str]:
    with run_server(lambda: create_app(demo_history, TOKEN, auto_sync=False)) as address:
        yield address
        slow.may_end.set()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with open_page(browser, address) as tab:
        yield tab.page


needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def response_ms(page: Page, url: str) -> float:
    """Open a page. Return the time from its request to the last byte of the response."""
    page.goto(url)
    timing = "performance.getEntriesByType('navigation')[0]"
    return float(page.evaluate(f"{timing}.responseEnd - {timing}.requestStart"))


def start_pattern_search(page: Page, query: str) -> None:
    page.evaluate(f"void fetch('/search?mode=regex&q={query}').catch(() => null)")


@needs_browser
def test_pages_are_fast_while_two_pattern_searches_run(
    browser: Browser, page: Page, address: str, slow: SlowSearch
) -> None:
    for path in PAGES:
        response_ms(page, address + path)  # loads modules and templates
    idle_ms = max(response_ms(page, address + path) for path in PAGES)
    with open_page(browser, address) as other:
        other.open("/health")
        for query in ("one", "two"):
            start_pattern_search(other.page, query)
        slow.wait_until(2)
        times = [statistics.median(response_ms(page, address + path) for _ in range(3)) for path in PAGES]
        assert slow.running == 2
        slow.may_end.set()
        slow.wait_until(0)
    # On a machine that is busy with other tests, pages are slow anyway.
    assert max(times) < max(MAX_PAGE_MS, 5 * idle_ms), dict(zip(PAGES, times, strict=True))


@needs_browser
def test_a_search_stops_when_its_page_is_left(page: Page, address: str, slow: SlowSearch) -> None:
    page.goto(f"{address}/health")
    start_pattern_search(page, "one")
    slow.wait_until(1)
    page.goto(f"{address}/sessions")
    slow.wait_until(0)
    assert not slow.may_end.is_set()


@needs_browser
@pytest.mark.parametrize("has_enter", [False, True])
def test_a_pattern_is_sent_after_a_pause_or_enter(
    page: Page, address: str, slow: SlowSearch, has_enter: bool
) -> None:
    slow.may_end.set()
    page.goto(f"{address}/search?mode=regex")
    page.locator("#theme").wait_for()
    page.keyboard.type("clo[a-z]s", delay=100)
    if has_enter:
        page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=clo*mode=regex")
    page.locator("#results:not([aria-busy])").wait_for()
    assert slow.queries == ["clo[a-z]s"]


def test_two_pattern_searches_run_at_a_time(address: str, slow: SlowSearch) -> None:
    clients = [httpx2.Client(base_url=address, timeout=TIMEOUT_SECONDS) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        answers = [threads.submit(one.get, "/api/v1/search?mode=regex&q=clock") for one in clients]
        slow.wait_until(2)
        time.sleep(0.2)
        slow.may_end.set()
        assert [answer.result().status_code for answer in answers] == [200] * 4
    assert slow.most_running == 2
    for client in clients:
        client.close()
