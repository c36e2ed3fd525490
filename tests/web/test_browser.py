"""The web app in a real browser: the system's Chromium, driven by Playwright."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript, tool_calls
from backscroll.web.app import create_app
from tests.export.sample_sessions import HOSTILE, write_hostile
from tests.web.browser import CHROMIUM, BrowserPage, open_page, run_server
from tests.web.conftest import CLOCKS, TOKEN

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

LONG = "10000000-0000-4000-8000-000000000001"
HOSTILE_ID = "5e551011-0000-4000-8000-0000000000bb"
TURNS = 120


@pytest.fixture(scope="module")
def odd_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a history with a long session and a hostile one."""
    folder: Path = tmp_path_factory.mktemp("odd")
    long = Transcript(LONG, seed=3, cwd="/home/zoe/ferry")
    for turn in range(TURNS):
        long.user(f"Prompt {turn}")
        long.run(tool_calls.bash(f"echo {turn}", f"{turn}\n" * 30), text=f"Answer {turn}")
    long.write(folder / "claude")
    write_hostile(folder / "claude")
    roots = [NamedRoot("claude-code", folder / "claude")]

    def open_history() -> History:
        return History(roots=roots, home=folder / "home")

    with open_history() as history:
        history.sync()
        history.annotations.add_note(HOSTILE_ID, HOSTILE)
        history.annotations.rename(HOSTILE_ID, HOSTILE)
    with run_server(lambda: create_app(open_history, TOKEN, auto_sync=False)) as address:
        yield address


def test_a_session_is_found_and_read_with_the_keyboard_alone(tab: BrowserPage) -> None:
    page = tab.open("/sessions")
    tab.wait_for_scripts()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".row-link").nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("A page about the year")
    tab.wait_for_scripts()
    page.keyboard.press("/")
    page.keyboard.type("clocks\n")
    expect(page.locator("#results mark").first).to_be_visible()
    tab.wait_for_scripts()
    page.keyboard.press("Escape")
    expect(page.locator("#q")).to_have_value("clocks")
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.get_by_role("heading", name="Recent sessions")).to_be_visible()


def test_results_appear_while_typing_and_the_address_follows(tab: BrowserPage) -> None:
    page = tab.open("/search")
    tab.wait_for_scripts()
    page.keyboard.type("remind me clo")
    found = page.locator("#results .row-title").filter(has_text="Departures two hours late on the board")
    expect(found).to_be_visible()
    page.wait_for_url("**/search?q=remind+me+clo")
    page.locator("#q").fill("xyzzyplugh")
    expect(page.locator("#results")).to_contain_text("Nothing found")


def test_a_filter_has_its_own_address(tab: BrowserPage) -> None:
    page = tab.open("/sessions")
    page.get_by_role("link", name=re.compile("^cursor-cli 11")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("11 sessions")
    page.wait_for_url("**/sessions?source=cursor-cli")
    page.get_by_role("link", name=re.compile("^Source cursor-cli")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("46 sessions")


def test_tool_calls_are_folded_and_can_be_opened(tab: BrowserPage) -> None:
    page = tab.open(f"/sessions/{CLOCKS}")
    call = page.locator("details.tool").first
    assert not call.get_attribute("open")
    call.locator("summary").click()
    expect(call.locator("pre.result")).to_be_visible()
    page.get_by_role("button", name="Expand all").click()
    assert page.locator(".window details:not([open])").count() == 0
    page.get_by_role("button", name="Collapse all").click()
    assert page.locator(".window details[open]").count() == 0


def test_a_deep_link_opens_the_message_in_the_viewport(browser: Browser, odd_address: str) -> None:
    with open_page(browser, odd_address) as tab:
        page = tab.open(f"/sessions/claude-code:{LONG}?at=200#m200")
        expect(page.locator("#m200")).to_be_in_viewport()
        assert page.locator("#m0").count() == 0  # not loaded


def test_a_long_session_is_loaded_while_scrolling(browser: Browser, odd_address: str) -> None:
    with open_page(browser, odd_address) as tab:
        page = tab.open(f"/sessions/claude-code:{LONG}")
        expect(page.locator("#m0")).to_be_visible()
        expect(page.get_by_text("Answer 119", exact=True)).to_have_count(0)
        for _ in range(40):
            page.mouse.wheel(0, 6000)
            page.wait_for_timeout(60)
            if page.get_by_text("Answer 119", exact=True).count():
                break
        expect(page.get_by_text("Answer 119", exact=True)).to_have_count(1)
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map((element) => element.id)")
        assert len(ids) == len(set(ids))


def test_earlier_messages_do_not_move_what_is_read(browser: Browser, odd_address: str) -> None:
    with open_page(browser, odd_address) as tab:
        page = tab.open(f"/sessions/claude-code:{LONG}?at=200#m200")
        top = page.locator("#m200").bounding_box()
        expect(page.locator("#m100")).to_have_count(1)  # loaded above
        later = page.locator("#m200").bounding_box()
        assert top is not None and later is not None
        assert abs(later["y"] - top["y"]) < 40


def test_the_prompts_lead_to_their_messages(browser: Browser, odd_address: str) -> None:
    with open_page(browser, odd_address) as tab:
        page = tab.open(f"/sessions/claude-code:{LONG}")
        page.locator(".outline").get_by_text("Prompt 5", exact=True).click()
        expect(page.get_by_text("Prompt 5", exact=True).last).to_be_in_viewport()
        expect(page.locator(".outline [aria-current]")).to_have_text("Prompt 5")


def test_matches_in_a_session_are_highlighted(tab: BrowserPage) -> None:
    page = tab.open(f"/sessions/{CLOCKS}?find=utc")
    tab.wait_for_scripts()
    assert page.evaluate("CSS.highlights.get('found').size") > 2
    page.keyboard.press("n")
    expect(page.locator(".found")).to_contain_text("Match 2 of")


def test_a_subagent_opens_in_place(tab: BrowserPage) -> None:
    page = tab.open("/sessions/f841ceec")
    agent = page.locator("details.agent").first
    expect(agent.locator("article.task")).to_be_hidden()
    agent.locator("summary").first.click()
    expect(agent.locator("article.task")).to_be_visible()


def test_a_star_is_set_after_the_launch_address_was_opened(tab: BrowserPage) -> None:
    page = tab.open(f"/launch?token={TOKEN}")
    page = tab.open(f"/sessions/{CLOCKS}")
    page.get_by_role("button", name="☆ Star").click()
    page.get_by_role("button", name="★ Remove the star").click()
    expect(page.get_by_role("button", name="☆ Star")).to_be_visible()


def test_a_backup_is_created_with_one_click(browser: Browser, odd_address: str) -> None:
    with open_page(browser, odd_address) as tab:
        tab.open(f"/launch?token={TOKEN}")
        page = tab.open("/health")
        tab.wait_for_scripts()
        page.get_by_role("button", name="Create and verify a backup").click()
        expect(page.locator("#backups")).to_contain_text("files checked")  # without a reload
        expect(page.locator("#backups tbody tr")).to_have_count(1)


def test_the_theme_is_switched_and_remembered(tab: BrowserPage) -> None:
    page = tab.open("/")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Switch between light and dark").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    tab.open("/sessions")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_dark_mode_follows_the_system(browser: Browser, address: str) -> None:
    with open_page(browser, address, color_scheme="dark") as tab:
        page = tab.open("/")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(25, 24, 22)"


def test_the_diffs_of_a_commit_are_shown_side_by_side(tab: BrowserPage) -> None:
    page = tab.open("/commits")
    page.locator(".commit .row-link").first.click()
    page.locator("pre.diff").first.wait_for()
    tab.wait_for_scripts()
    old = page.locator("pre.diff .two > del, pre.diff .two > .same").first
    assert page.locator("pre.diff").count()
    whole = old.bounding_box()
    page.keyboard.press("d")
    expect(page.get_by_role("button", name="Side by side")).to_have_attribute("aria-pressed", "true")
    half = old.bounding_box()
    frame = page.locator("pre.diff").first.bounding_box()
    assert whole and half and frame
    assert half["width"] < frame["width"] * 0.55


def test_a_phone_shows_no_key_for_the_palette(browser: Browser, address: str) -> None:
    with open_page(browser, address, viewport={"width": 390, "height": 800}) as tab:
        page = tab.open("/")
        tab.wait_for_scripts()
        expect(page.locator(".palette-button kbd")).to_be_hidden()
        page.get_by_text("Go to", exact=True).click()
        expect(page.locator("#palette")).to_be_visible()


def test_the_largest_value_of_a_chart_is_on_one_line(tab: BrowserPage) -> None:
    page = tab.open("/health")
    label = page.locator(".value.high").first
    label.evaluate("element => { element.textContent = '150.0 MB' }")
    size = label.evaluate(
        "element => [element.getClientRects().length, element.scrollWidth - element.clientWidth]"
    )
    assert size == [1, 0]
    assert label.evaluate("element => element.offsetHeight") < 20


_COLORS = """() => [...document.styleSheets].flatMap(sheet => [...sheet.cssRules])
  .flatMap(rule => [...(rule.style ?? [])]).filter(name => name.startsWith("--"))
  .map(name => {
    const element = document.body.appendChild(document.createElement("i"));
    element.style.backgroundColor = `var(${name})`;
    const color = `${name} ${getComputedStyle(element).backgroundColor}`;
    element.remove();
    return color;
  })"""


def test_the_switch_and_the_system_choose_the_same_dark_colors(browser: Browser, address: str) -> None:
    def colors(system: Literal["light", "dark"], *, is_switched: bool) -> list[str]:
        with open_page(browser, address, color_scheme=system) as tab:
            page = tab.open("/search")
            tab.wait_for_scripts()
            if is_switched:
                page.get_by_role("button", name="Switch between light and dark").click()
            found: list[str] = page.evaluate(_COLORS)
            return found

    dark = colors("dark", is_switched=False)
    assert len(dark) > 37  # also fonts and sizes, which have no color
    assert colors("light", is_switched=True) == dark
    light = colors("light", is_switched=False)
    assert colors("dark", is_switched=True) == light
    assert sum(one != other for one, other in zip(light, dark, strict=True)) == 37


def test_a_dark_page_is_printed_in_dark_ink(tab: BrowserPage) -> None:
    page = tab.open("/")
    tab.wait_for_scripts()
    page.keyboard.press("t")
    light_text = page.evaluate("getComputedStyle(document.body).color")
    page.emulate_media(media="print")
    assert light_text == "rgb(232, 227, 220)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(36, 33, 29)"


def test_new_messages_and_sessions_appear_by_themselves(browser: Browser, tmp_path: Path) -> None:
    session = Transcript(LONG, seed=4, cwd="/home/zoe/ferry").user("the first ferry").assistant("At nine.")
    session.write(tmp_path / "claude")
    roots = [NamedRoot("claude-code", tmp_path / "claude")]

    def open_history() -> History:
        return History(roots=roots, home=tmp_path / "home")

    with open_history() as history:
        history.sync()
    with run_server(lambda: create_app(open_history, TOKEN)) as address, open_page(browser, address) as tab:
        page = tab.open(f"/sessions/claude-code:{LONG}")
        tab.wait_for_scripts()
        session.user("And the second one?").assistant("At ten.").write(tmp_path / "claude")
        expect(page.get_by_text("At ten.")).to_be_visible(timeout=20_000)
        expect(page.locator(".outline")).to_contain_text("And the second one?")
        page = tab.open("/sessions")
        tab.wait_for_scripts()
        Transcript(seed=5, cwd="/home/zoe/quay").user("a new quay").assistant("Yes.").write(
            tmp_path / "claude"
        )
        expect(page.get_by_text("a new quay").first).to_be_visible(timeout=20_000)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/sessions",
        "/search?q=clocks",
        f"/sessions/{CLOCKS}",
        "/commits",
        "/files?path=build.ts",
        "/health",
    ],
)
def test_no_page_scrolls_sideways(tab: BrowserPage, path: str) -> None:
    page = tab.open(path)
    for width in (360, 768, 2560):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_everything_can_be_read_without_javascript(browser: Browser, address: str) -> None:
    with open_page(browser, address, java_script_enabled=False) as tab:
        page = tab.open("/sessions")
        page.get_by_role("link", name=re.compile("503 in the night")).click()
        expect(page.get_by_text("417 requests failed")).to_be_visible()
        page.locator("details.tool").first.locator("summary").click()
        expect(page.locator("details.tool").first.locator("pre.result")).to_be_visible()
        page.get_by_label("Search everything").fill("remind me clocks")
        page.get_by_label("Search everything").press("Enter")
        expect(page.locator("#results mark").first).to_be_visible()


@pytest.mark.parametrize(
    "path",
    ["/", "/sessions", f"/sessions/{HOSTILE_ID}", "/search?q=alert", f"/sessions/{HOSTILE_ID}/messages/0"],
)
def test_hostile_text_runs_nothing_and_loads_nothing(browser: Browser, odd_address: str, path: str) -> None:
    with open_page(browser, odd_address) as tab:
        page = tab.open(path)
        page.wait_for_load_state("networkidle")
        expect(page.locator("#content")).to_be_visible()


def test_filters_follow_the_words_of_the_title(tab: BrowserPage) -> None:
    page = tab.open("/sessions")
    tab.wait_for_scripts()
    sources = page.locator(".filter", has=page.get_by_role("heading", name="Source"))
    before = sources.inner_text()
    page.get_by_label("Words of the title").press_sequentially("clocks", delay=20)
    expect(page).to_have_url(re.compile("title=clocks$"))
    expect(sources).not_to_have_text(before, use_inner_text=True)
    expect(page.get_by_label("Words of the title")).to_be_focused()
    expect(page.locator(".dates input[name=title]")).to_have_value("clocks")
    sources.get_by_role("link", name=re.compile("claude-code")).click()
    page.wait_for_url("**/sessions?title=clocks&source=claude-code")
