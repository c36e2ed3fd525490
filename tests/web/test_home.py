"""The home page: figures of a time range, charts with their numbers, and the progress of the first sync."""

import re
from collections.abc import Iterator
from datetime import date, timedelta
from html import unescape

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient

from backscroll.model.session import Filter, SortKey
from backscroll.model.statistics import By, Report, Sums
from backscroll.model.sync import SyncStatus
from backscroll.render.humanize import compact_number, format_cost, format_usd
from backscroll.web.app import create_app
from backscroll.web.pages.figures import calendar_facts, cards
from backscroll.web.served_history import ServedHistory
from tests.web.browser import CHROMIUM, BrowserPage, open_page, run_server
from tests.web.conftest import TOKEN, OpenHistory, text_of

in_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def test_cards_show_the_totals(client: TestClient, demo_history: OpenHistory) -> None:
    text = text_of(client.get("/?range=all").text)
    with demo_history() as history:
        total = history.statistics.report().total
    assert total.tokens is not None
    for expected in (
        f"Sessions {total.sessions}",
        f"Prompts {total.prompts}",
        f"Messages {total.messages}",
        f"Tokens ≥ {compact_number(total.tokens.total)}",
        f"Cost {format_cost(total)}",
        f"+{total.lines_added} −{total.lines_removed}",
        f"of {total.edits_decided}",
    ):
        assert expected in text, expected


def test_facts_of_the_calendar_name_streaks_and_the_busiest_day() -> None:
    day = date(2026, 11, 1)
    days = {day + timedelta(days=number): number + 1 for number in (0, 1, 2, 5, 8, 9)} | {
        day + timedelta(days=6): 0
    }
    assert dict(calendar_facts(days, day + timedelta(days=10))) == {
        "Active days": "6",
        "Busiest day": "10 Nov 2026, 10 messages",
        "Longest streak": "3 days, from 1 Nov 2026",
        "Current streak": "2 days",
    }
    assert "Current streak" not in dict(calendar_facts(days, day + timedelta(days=11)))
    assert not dict(calendar_facts({day: 0}, day))


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (90 * 60, "1 h 30 min"), (100 * 3600, "100 h"), (1e7, "2,778 h")]
)
def test_a_long_active_time_is_shown_in_hours(seconds: float, text: str) -> None:
    report = Report(
        by="day",
        total=Sums(key=None, active_seconds=seconds),
        rows=(),
        unpriced=(),
        prices_checked=date(2026, 11, 1),
        zone="UTC",
        since=None,
        until=None,
        timeline=(),
        undated_messages=0,
        repeated_messages=0,
        repeated_subagent_messages=0,
        uncounted_sessions=0,
    )
    assert next(card.value for card in cards(report) if card.label == "Active time") == text


@pytest.mark.parametrize("metric", ["messages", "sessions", "tokens", "cost", "lines"])
def test_bars_show_the_chosen_value(client: TestClient, demo_history: OpenHistory, metric: str) -> None:
    html = client.get(f"/?range=all&metric={metric}").text
    assert f"{metric.capitalize()} by month" in text_of(html)
    chart = html[html.index('class="chart bars"') : html.index("axis-labels")]
    bars = re.split(r'class="hit"', chart)[1:]
    heights = [sum(map(float, re.findall(r'class="bar[^>]*height="([\d.]+)"', bar))) for bar in bars]
    with demo_history() as history:
        rows = history.statistics.report(by="month").rows
    values = {
        "messages": [row.messages or 0 for row in rows],
        "sessions": [row.sessions for row in rows],
        "tokens": [row.tokens.total if row.tokens else 0 for row in rows],
        "cost": [row.cost_usd or 0 for row in rows],
        "lines": [(row.lines_added or 0) + (row.lines_removed or 0) for row in rows],
    }[metric]
    shown = heights[: len(values)]
    assert [value / max(values) for value in values] == pytest.approx(
        [size / max(shown) for size in shown], abs=0.02
    )


@pytest.mark.parametrize("metric", ["messages", "sessions", "tokens", "cost", "lines"])
@pytest.mark.parametrize("stack", ["source", "workspace", "model"])
def test_the_parts_of_the_bars_are_those_of_the_report(
    client: TestClient, demo_history: OpenHistory, metric: str, stack: str
) -> None:
    html = client.get(f"/?range=all&metric={metric}&stack={stack}").text
    start = html.index("bar-legend")
    shown = re.findall(r"</svg> ([^<]+) <small>([^<]+)</small>", html[start : html.index("</ul>", start)])
    group: By = "source"  # messages and lines have no model
    if stack == "workspace":
        group = "workspace"
    elif stack == "model" and metric in ("tokens", "cost"):
        group = "model"
    with demo_history() as history:
        rows = history.statistics.report(by=group).rows
    values = {row.key or "": _value(row, metric) for row in rows}
    assert len(shown) == min(sum(value > 0 for value in values.values()), 6)
    for name, value in values.items():
        # A session of several months counts in each of them.
        if name in dict(shown) and metric != "sessions":
            assert dict(shown)[name] == (
                format_usd(value) if metric == "cost" else compact_number(int(value))
            )
    if metric == "lines":
        assert sum(int(value) for _, value in shown) == sum(values.values())


def _value(row: Sums, metric: str) -> float:
    return {
        "messages": row.messages or 0,
        "sessions": row.sessions,
        "tokens": row.tokens.total if row.tokens else 0,
        "cost": row.cost_usd or 0,
        "lines": (row.lines_added or 0) + (row.lines_removed or 0),
    }[metric]


def test_figures_can_be_limited_to_a_source_and_a_workspace(
    client: TestClient, demo_history: OpenHistory
) -> None:
    with demo_history() as history:
        workspace = next(one.path for one in history.list_workspaces() if one.name == "tideline")
        total = history.statistics.report(Filter(source="cursor", workspace=workspace)).total
    html = client.get("/", params={"range": "all", "source": "cursor", "workspace": workspace}).text
    assert total.messages
    assert f"Messages {total.messages} " in text_of(html)
    assert f'<option value="{workspace}" title="{workspace}" selected>tideline</option>' in html
    urls = re.findall(r'href="(/\?[^"]*metric=[^"]*)"', html)
    assert urls
    assert all("source=cursor" in url for url in urls)


@pytest.mark.parametrize(
    "query", ["workspace=nowhere", "source=nothing", "workspace=%00", f"source={'x' * 5000}"]
)
def test_unknown_filters_of_the_figures_show_nothing(client: TestClient, query: str) -> None:
    response = client.get(f"/?{query}")
    assert response.status_code == 200
    assert "Sessions 0 " in text_of(response.text)


@pytest.mark.parametrize("sort", ["tokens", "messages", "prompts", "lines"])
def test_top_sessions_are_the_first_of_the_sorted_list(
    client: TestClient, demo_history: OpenHistory, sort: SortKey
) -> None:
    html = client.get(f"/?range=all&top={sort}").text
    table = html[html.index("top-sessions") :]
    with demo_history() as history:
        expected = [one.ref for one in history.list_sessions(limit=8, sort=sort).data]
    assert re.findall(r'<th scope="row"><a href="/sessions/([^"]+)"', table)[:8] == expected


def test_every_chart_has_a_table_with_the_same_numbers(client: TestClient, demo_history: OpenHistory) -> None:
    html = client.get("/?range=all").text
    text = text_of(html)
    with demo_history() as history:
        months = history.statistics.report(by="month").rows
        days = history.statistics.report(by="day").rows
        hours = history.statistics.messages_by_hour(Filter())
    for row in months:
        assert f"{row.key} {row.sessions} {row.prompts} {row.messages}" in text
    for row in days:
        assert f"{row.key} {row.messages}" in text
    for hour in range(24):
        assert f"{hour:02}:00 {' '.join(str(day[hour]) for day in hours)}" in text


def test_a_bar_leads_to_the_sessions_of_its_period(client: TestClient, demo_history: OpenHistory) -> None:
    html = client.get("/?range=all").text
    urls = re.findall(r'<th scope="row"><a href="(/sessions\?since=[^"]+)">(2026-\d\d)</a>', html)
    assert len(urls) == 5
    for url, month in urls:
        assert client.get(unescape(url)).status_code == 200, month


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("range=century", "is not a time range"),
        ("metric=weight", "is not a value"),
        ("top=x", "is not an order"),
        ("stack=tool", "is not a group"),
    ],
)
@pytest.mark.parametrize("path", ["/", "/figures"])
def test_an_unknown_value_is_explained(client: TestClient, path: str, query: str, message: str) -> None:
    response = client.get(f"{path}?{query}")
    assert response.status_code == 400
    assert message in response.text


@pytest.fixture
def tab(browser: Browser, demo_history: OpenHistory) -> Iterator[BrowserPage]:
    app = create_app(demo_history, TOKEN, auto_sync=False)
    with run_server(lambda: app) as address, open_page(browser, address) as tab:
        yield tab


@in_browser
def test_the_numbers_of_a_bar_appear_beside_the_pointer(tab: BrowserPage) -> None:
    page = tab.open("/?range=all")
    tab.wait_for_scripts()
    bar = page.locator(".chart.bars a").first
    title = bar.locator("title").text_content()
    bar.hover()
    expect(page.locator(".tip")).to_have_text(title or "-")
    page.mouse.move(5, 5)
    expect(page.locator(".tip")).to_be_hidden()
    expect(bar.locator("title")).to_have_text(title or "-")


@in_browser
def test_figures_change_in_place(tab: BrowserPage) -> None:
    page = tab.open("/?range=all")
    tab.wait_for_scripts()
    page.evaluate("window.isSamePage = true")
    page.get_by_role("navigation", name="Value").get_by_role("link", name="Tokens").click()
    expect(page.get_by_role("heading", name="Tokens by month")).to_be_visible()
    expect(page.get_by_role("navigation", name="Value").get_by_role("link", name="Tokens")).to_be_focused()
    page.get_by_role("navigation", name="Order").get_by_role("link", name="Messages").click()
    page.wait_for_url("**/?range=all&metric=tokens&top=messages")
    page.get_by_label("Source").focus()
    page.get_by_label("Source").select_option("cursor")
    page.wait_for_url("**/?range=all&metric=tokens&top=messages&source=cursor")
    expect(page.locator(".card").filter(has_text="Sessions")).to_contain_text("12")
    expect(page.get_by_label("Source")).to_be_focused()
    assert page.evaluate("window.isSamePage")


@in_browser
def test_the_progress_of_the_first_sync_is_shown_live(
    browser: Browser, demo_history: OpenHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = SyncStatus(is_complete=False, is_running=True, percent=10)
    monkeypatch.setattr(ServedHistory, "sync_status", lambda served: status)
    app = create_app(demo_history, TOKEN, auto_sync=False)
    with run_server(lambda: app) as address, open_page(browser, address) as tab:
        page = tab.open("/")
        progress = page.get_by_role("progressbar", name="Progress of the first sync")
        expect(progress).to_have_js_property("value", 10)
        tab.wait_for_scripts()
        page.evaluate("window.isSamePage = true")
        status = SyncStatus(is_complete=False, is_running=True, percent=64, remaining_seconds=42.0)
        expect(progress).to_have_js_property("value", 64)
        expect(page.get_by_role("status")).to_contain_text("64 % done, about 40 s left.")
        status = SyncStatus(is_complete=True)
        expect(progress).to_have_count(0)
        expect(page.locator("#figures:not([aria-busy]) .chart").first).to_be_visible()
        assert page.evaluate("window.isSamePage")


@in_browser
def test_the_progress_is_shown_without_javascript_and_on_other_pages(
    browser: Browser, demo_history: OpenHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = SyncStatus(is_complete=False, is_running=True, percent=37, remaining_seconds=150.0)
    monkeypatch.setattr(ServedHistory, "sync_status", lambda served: status)
    app = create_app(demo_history, TOKEN, auto_sync=False)
    with run_server(lambda: app) as address, open_page(browser, address, java_script_enabled=False) as tab:
        for path in ("/", "/sessions", "/search"):
            page = tab.open(path)
            expect(page.get_by_role("status").first).to_contain_text("37 % done, about 2 min left.")


@in_browser
def test_figures_can_be_changed_without_javascript(browser: Browser, demo_history: OpenHistory) -> None:
    app = create_app(demo_history, TOKEN, auto_sync=False)
    with run_server(lambda: app) as address, open_page(browser, address, java_script_enabled=False) as tab:
        page = tab.open("/?range=all&metric=tokens")
        page.get_by_label("Source").select_option("cursor-cli")
        page.get_by_role("button", name="Apply").click()
        expect(page.locator(".card").filter(has_text="Sessions")).to_contain_text("11")
        expect(page.get_by_role("heading", name="Tokens by month")).to_be_visible()
        page.locator("details").filter(has_text="2026-07").locator("summary").first.click()
        expect(
            page.get_by_role("cell", name="2026-07").or_(page.get_by_role("rowheader")).first
        ).to_be_visible()
