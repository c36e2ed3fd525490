"""Search as you type in a real browser: results, counts of the filters, keyboard and browser history."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.web.browser import CHROMIUM, BrowserPage, open_page

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def test_counts_follow_what_is_typed(tab: BrowserPage) -> None:
    page = tab.open("/search")
    tab.wait_for_scripts()
    page.keyboard.type("clo")
    facets = page.get_by_role("complementary", name="Filters")
    expect(facets).to_contain_text("messages match all words")
    before = facets.inner_text()
    page.keyboard.type("cks")
    expect(facets).not_to_have_text(before, use_inner_text=True)
    page.locator("#q").fill("")
    expect(facets).to_be_empty()


def test_a_filter_changes_the_query_in_place_and_back_removes_it(tab: BrowserPage) -> None:
    page = tab.open("/search?q=clock")
    tab.wait_for_scripts()
    page.evaluate("window.isSamePage = true")
    page.get_by_role("link", name=re.compile("^Tool calls 8")).click()
    expect(page.locator("#q")).to_have_value("clock role:tool")
    page.wait_for_url("**/search?q=clock+role%3Atool")
    expect(page.get_by_role("list", name="Active filters")).to_contain_text("role tool")
    page.get_by_role("link", name=re.compile("^website")).click()
    expect(page.locator("#q")).to_have_value("clock role:tool workspace:website")
    page.wait_for_url("**/search?q=*workspace%3Awebsite")
    filters = page.get_by_role("list", name="Active filters")
    expect(filters).to_contain_text("website")
    page.go_back()
    expect(page.locator("#q")).to_have_value("clock role:tool")
    expect(filters).not_to_contain_text("website")
    filters.get_by_role("link").click()
    expect(page.locator("#q")).to_have_value("clock")
    assert page.evaluate("window.isSamePage")


def test_filters_of_a_search_for_text_stay_apart_from_it(tab: BrowserPage) -> None:
    page = tab.open("/search?q=clock&mode=exact")
    tab.wait_for_scripts()
    page.get_by_role("link", name=re.compile("^Tool calls")).click()
    page.wait_for_url("**/search?q=clock&mode=exact&filter=role%3Atool")
    filters = page.get_by_role("list", name="Active filters")
    expect(filters).to_contain_text("role tool")
    expect(page.locator("#q")).to_have_value("clock")
    page.locator("#q").fill("clocks")
    page.wait_for_url("**/search?q=clocks&mode=exact&filter=role%3Atool")
    expect(filters).to_contain_text("role tool")
    page.get_by_label("Words", exact=True).check()
    expect(page.locator("#q")).to_have_value("clocks role:tool")
    page.wait_for_url("**/search?q=clocks+role%3Atool")
    page.go_back()
    page.wait_for_url("**/search?q=clock&mode=exact")
    expect(filters).to_have_count(0)


def test_a_bar_of_the_timeline_limits_the_dates(tab: BrowserPage) -> None:
    page = tab.open("/search?q=clock")
    tab.wait_for_scripts()
    page.locator("#facets .timeline a").first.click()
    expect(page.locator("#q")).to_have_value("clock since:2026-07 until:2026-07")
    expect(page.locator("#facets .bar.active")).to_have_count(1)


def test_results_are_reached_with_the_arrow_keys(tab: BrowserPage) -> None:
    page = tab.open("/search?q=clock")
    tab.wait_for_scripts()
    links = page.locator("#results .row-link")
    page.keyboard.press("ArrowDown")
    expect(links.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#q")).to_be_focused()


def test_filters_are_folded_on_a_phone(browser: Browser, address: str) -> None:
    with open_page(browser, address, viewport={"width": 390, "height": 800}) as tab:
        page = tab.open("/search?q=clock")
        tab.wait_for_scripts()
        expect(page.get_by_role("link", name=re.compile("^Tool calls"))).to_be_hidden()
        page.get_by_text("Filters", exact=True).click()
        expect(page.get_by_role("link", name=re.compile("^Tool calls"))).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_filters_work_without_javascript(browser: Browser, address: str) -> None:
    with open_page(browser, address, java_script_enabled=False) as tab:
        page = tab.open("/search?q=clock")
        page.get_by_role("link", name=re.compile("^Tool calls 8")).click()
        expect(page.locator("#q")).to_have_value("clock role:tool")
        expect(page.locator("#results .row-link").first).to_be_visible()


def test_excerpts_are_upright_and_whole(tab: BrowserPage) -> None:
    page = tab.open("/search?q=clock")
    excerpt = page.locator(".matches .excerpt").first
    styles = excerpt.evaluate(
        "element => [getComputedStyle(element).fontStyle, getComputedStyle(element).whiteSpace]"
    )
    assert styles == ["normal", "pre-line"]
