"""Find in a session and jumps in a real browser."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from backscroll.web.app import create_app
from tests.web.browser import CHROMIUM, BrowserPage, open_page, run_server
from tests.web.conftest import TOKEN
from tests.web.long_session import LONG_URL, TURNS, write_long_history

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    open_history = write_long_history(tmp_path_factory.mktemp("find"))
    with run_server(lambda: create_app(open_history, TOKEN, auto_sync=False)) as address:
        yield address


def _open(tab: BrowserPage, query: str) -> Page:
    page = tab.open(LONG_URL + query)
    tab.wait_for_scripts()
    return page


def _is_below_bar(page: Page, position: int) -> bool:
    expect(page.locator(f"#m{position}")).to_be_in_viewport()
    page.wait_for_timeout(800)  # earlier messages are added above
    bar, message = page.locator("form.find").bounding_box(), page.locator(f"#m{position}").bounding_box()
    assert bar is not None
    assert message is not None
    return bar["y"] + bar["height"] <= message["y"]


@pytest.mark.parametrize("width", [1360, 390])
def test_a_linked_message_is_not_under_the_find_bar(browser: Browser, address: str, width: int) -> None:
    with open_page(browser, address, viewport={"width": width, "height": 800}) as tab:
        page = _open(tab, "#m150")
        assert _is_below_bar(page, 150)
        expect(page.locator("#m150:target")).to_have_count(1)
        page.evaluate("location.hash = '#m300'")
        assert _is_below_bar(page, 300)
        page.go_back()
        assert _is_below_bar(page, 150)
        expect(page.locator("#m150:target")).to_have_count(1)


def test_back_returns_to_the_number_of_the_match(tab: BrowserPage) -> None:
    page = _open(tab, "?find=Answer")
    for number in (2, 3):
        page.keyboard.press("n")
        expect(page.locator(".found")).to_have_text(f"Match {number} of {TURNS}")
        page.wait_for_url("**at=*#m*")
    page.wait_for_timeout(200)
    page.go_back()
    expect(page.locator(".found")).to_have_text(f"Match 2 of {TURNS}")
    page.go_back()
    expect(page.locator(".found")).to_have_text(f"Match 1 of {TURNS}")
    page.go_forward()
    expect(page.locator(".found")).to_have_text(f"Match 2 of {TURNS}")


@pytest.mark.parametrize(
    ("query", "text"), [("find=r+12&mode=exact", "r 12"), ("find=wer+1[23]$&mode=regex", "wer 12")]
)
def test_a_pattern_is_highlighted_as_a_whole(tab: BrowserPage, query: str, text: str) -> None:
    page = _open(tab, f"?{query}")
    expect(page.get_by_text("Answer 12", exact=True)).to_be_in_viewport()
    marked = page.evaluate("[...CSS.highlights.get('found')].map(String)")
    assert text in marked
    assert all(len(one) == len(text) for one in marked)


def test_a_query_that_the_server_rejects_removes_the_old_results(tab: BrowserPage) -> None:
    page = tab.open("/search?q=Answer")
    tab.wait_for_scripts()
    expect(page.locator("#q")).to_have_attribute("maxlength", "1000")
    page.route("**/search?*", lambda route: route.fulfill(status=414, body="Request-URI Too Long"))
    page.locator("#q").fill("Prompt")
    expect(page.locator("#results")).to_contain_text("The server did not answer this query.")
    expect(page.locator("#results")).not_to_have_attribute("aria-busy", "true")
    tab.problems.clear()  # the browser logs the rejected request


def test_a_star_keeps_the_place_in_the_session(tab: BrowserPage) -> None:
    tab.open(f"/launch?token={TOKEN}")
    page = _open(tab, "?find=Answer#m150")
    assert _is_below_bar(page, 150)
    page.mouse.wheel(0, 300)
    page.wait_for_timeout(300)
    page.get_by_role("button", name="Star").click()
    expect(page.get_by_role("button", name="Remove the star")).to_be_attached()
    tab.wait_for_scripts()
    page.wait_for_timeout(500)
    positions = page.locator(".window > [id^='m']").evaluate_all(
        "all => all.filter((one) => { const box = one.getBoundingClientRect();"
        " return box.bottom > 110 && box.top < innerHeight; }).map((one) => Number(one.id.slice(1)))"
    )
    assert positions
    assert all(140 < position < 180 for position in positions)
    assert "find=Answer" in page.url
    page.get_by_role("button", name="Remove the star").click()
