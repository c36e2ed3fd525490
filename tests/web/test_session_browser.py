"""The page of a session in a real browser: minimap, diffs, jumps."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from backscroll.web.app import create_app
from tests.web.browser import CHROMIUM, BrowserPage, open_page, run_server
from tests.web.conftest import TOKEN
from tests.web.long_session import LONG_ID, LONG_URL, TURNS, write_long_history

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

WIDE = {"width": 1600, "height": 900}
PHONE = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    open_history = write_long_history(tmp_path_factory.mktemp("long"))
    with run_server(lambda: create_app(open_history, TOKEN, auto_sync=False)) as address:
        yield address


@pytest.fixture
def tab(browser: Browser, address: str) -> Iterator[BrowserPage]:
    with open_page(browser, address, viewport=WIDE) as tab:
        yield tab


def open_session(tab: BrowserPage, query: str = "") -> Page:
    page = tab.open(LONG_URL + query)
    tab.wait_for_scripts()
    return page


def row(page: Page, index: int) -> Locator:
    return page.locator(".minimap a").nth(index)


def prompt(page: Page, turn: int) -> Locator:
    return (
        page.locator("article.user").filter(has_text=f"Prompt {turn}").filter(has_not_text=f"Prompt {turn}0")
    )


def diff_of(page: Page) -> Locator:
    return page.locator("pre.diff").first


def open_edit(tab: BrowserPage) -> Page:
    """Open the session at its edit."""
    page = open_session(tab)
    page.locator(".minimap a:has(.edits)").click()
    expect(diff_of(page)).to_be_visible()
    expect(page.locator("[data-is-loading]")).to_have_count(0)  # messages above it
    return page


def test_a_click_on_the_minimap_loads_that_part_without_a_new_page(tab: BrowserPage) -> None:
    page = open_session(tab)
    page.evaluate("window.isSamePage = true")
    row(page, 150).click()
    target = row(page, 150).get_attribute("data-position")
    expect(page.locator(f"#m{target}")).to_be_in_viewport()
    page.wait_for_url(f"**at={target}#m{target}")
    assert page.evaluate("window.isSamePage")
    assert page.locator("#m0").count() == 0
    page.go_back()
    expect(page.locator("#m0")).to_be_in_viewport()


def test_the_frame_of_the_minimap_follows_the_viewport(tab: BrowserPage) -> None:
    page = open_session(tab)
    frame = page.locator(".minimap .view")
    expect(frame).to_have_attribute("y", "0")
    assert float(frame.get_attribute("height") or 1000) < 100
    row(page, 80).click()
    expect(frame).to_have_attribute("y", re.compile(r"(4[5-9]|5[0-4])\d(\.|$)"))
    expect(page.locator(".minimap [aria-current]")).to_have_count(1)


def test_the_minimap_has_one_tab_stop_and_is_used_with_the_arrow_keys(tab: BrowserPage) -> None:
    page = open_session(tab)
    page.locator('.minimap a[tabindex="0"]').focus()
    for key in ("End", "ArrowUp", "ArrowUp"):
        page.keyboard.press(key)
    expect(row(page, 157)).to_be_focused()
    expect(page.locator('.minimap a[tabindex="0"]')).to_have_count(1)
    expect(page.locator(".minimap-card")).to_contain_text("Message")
    target = row(page, 157).get_attribute("data-position")
    page.keyboard.press("Enter")
    expect(page.locator(f"#m{target}")).to_be_in_viewport()


def test_the_card_of_the_minimap_shows_the_prompt(tab: BrowserPage) -> None:
    page = open_session(tab)
    expect(page.locator(".outline [data-position]")).to_have_count(TURNS)
    found = page.locator(".minimap a:has(.prompt)").nth(3)
    found.hover()
    expect(page.locator(".minimap-card")).to_contain_text("1 prompt")
    expect(page.locator(".minimap-card q")).to_have_text("Prompt 3")
    page.mouse.move(10, 10)
    expect(page.locator(".minimap-card")).to_be_hidden()


def test_the_minimap_is_hidden_on_a_phone(browser: Browser, address: str) -> None:
    with open_page(browser, address, viewport=PHONE) as tab:
        page = open_session(tab)
        expect(page.locator(".minimap")).to_be_hidden()
        expect(page.locator("#diff-layout")).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_the_minimap_consists_of_links_without_javascript(browser: Browser, address: str) -> None:
    with open_page(browser, address, viewport=WIDE, java_script_enabled=False) as tab:
        page = tab.open(LONG_URL)
        target = row(page, 100).get_attribute("data-position")
        row(page, 100).click()
        expect(page.locator(f"#m{target}")).to_be_in_viewport()


def test_a_prompt_far_away_is_reached_without_a_new_page(tab: BrowserPage) -> None:
    page = open_session(tab)
    page.evaluate("window.isSamePage = true")
    page.locator(".outline").get_by_text("Prompt 100", exact=True).click()
    expect(prompt(page, 100)).to_be_in_viewport()
    assert page.evaluate("window.isSamePage")
    for _ in range(40):  # earlier messages can be loaded again
        page.mouse.wheel(0, -6000)
        page.wait_for_timeout(60)
        if page.locator("#m0").count():
            break
    expect(page.locator("#m0")).to_have_count(1)
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(ids) == len(set(ids))


def boxes(page: Page) -> tuple[dict[str, float], dict[str, float]]:
    """Return the boxes of the two versions of one line of the edit."""
    removed = diff_of(page).locator("del", has_text="utc = True").bounding_box()
    added = diff_of(page).locator("ins", has_text="utc = False").bounding_box()
    assert removed is not None and added is not None
    return dict(removed), dict(added)


def test_diffs_are_inline_and_mark_the_changed_words(tab: BrowserPage) -> None:
    page = open_edit(tab)
    removed, added = boxes(page)
    assert added["y"] > removed["y"]
    assert added["x"] == removed["x"]
    assert diff_of(page).locator("b.changed").all_inner_texts() == ["True", ", day", "False"]
    expect(diff_of(page).locator("del").first).to_have_attribute("data-line", "4")
    expect(diff_of(page).locator(".k-kc").first).to_have_text("True")


def test_diffs_are_shown_side_by_side_and_the_choice_is_remembered(tab: BrowserPage) -> None:
    page = open_edit(tab)
    button = page.get_by_role("button", name="Side by side")
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()
    removed, added = boxes(page)
    assert added["y"] == removed["y"]
    assert added["height"] == removed["height"]
    assert added["x"] >= removed["x"] + removed["width"] - 1
    page = open_edit(tab)
    expect(button).to_have_attribute("aria-pressed", "true")
    assert boxes(page)[0]["y"] == boxes(page)[1]["y"]
    page.keyboard.press("d")
    expect(button).to_have_attribute("aria-pressed", "false")
    assert boxes(page)[0]["y"] != boxes(page)[1]["y"]


def test_the_layout_of_diffs_changes_without_moving_what_is_read(tab: BrowserPage) -> None:
    page = open_edit(tab)
    page.evaluate("document.querySelector('pre.diff').scrollIntoView({ block: 'center' })")
    before, _ = boxes(page)
    page.keyboard.press("d")
    after, _ = boxes(page)
    assert abs(before["y"] - after["y"]) < 30


def test_diffs_are_inline_on_a_narrow_screen_whatever_the_choice(browser: Browser, address: str) -> None:
    with open_page(browser, address, viewport=WIDE) as tab:
        page = open_edit(tab)
        page.keyboard.press("d")
        page.set_viewport_size({"width": 700, "height": 900})
        removed, added = boxes(page)
        assert added["x"] == removed["x"]
        assert added["y"] > removed["y"]


def test_a_copied_diff_is_a_unified_diff(browser: Browser, address: str) -> None:
    with open_page(browser, address, viewport=WIDE, permissions=["clipboard-read", "clipboard-write"]) as tab:
        page = open_edit(tab)
        page.keyboard.press("d")
        page.locator("details.tool", has=diff_of(page)).get_by_role("button", name="copy").click()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.split("\n") == [
            "-def board(quay):",
            "-    utc = True",
            "+def board(quay, day):",
            "+    utc = False",
            "+    late = day in zones.LATE",
        ]


def test_diffs_are_readable_without_javascript(browser: Browser, address: str) -> None:
    with open_page(browser, address, java_script_enabled=False) as tab:
        page = tab.open(LONG_URL)
        page.locator(".minimap a:has(.edits)").first.click()
        removed, added = boxes(page)
        assert added["y"] > removed["y"]
        expect(page.locator("#diff-layout")).to_be_hidden()


def test_a_long_subagent_is_loaded_when_it_is_opened(tab: BrowserPage) -> None:
    page = open_session(tab)
    agent = page.locator("details.agent").first
    expect(agent.locator("details.tool")).to_have_count(0)
    agent.locator("summary").first.click()
    expect(agent.locator("summary").get_by_text("count 3", exact=True)).to_be_visible()
    expect(agent.get_by_role("button", name="copy").first).to_be_attached()
    agent.get_by_role("link", name=re.compile(r"Later messages \(\d+\)")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Count")
    expect(page.locator("summary").get_by_text("count 149", exact=True)).to_be_attached()


def test_matches_are_stepped_through_without_a_new_page(tab: BrowserPage) -> None:
    page = open_session(tab, "?find=Answer")
    page.evaluate("window.isSamePage = true")
    expect(page.locator(".found")).to_have_text(f"Match 1 of {TURNS}")
    page.keyboard.press("p")  # the one before the first is the last
    expect(page.locator(".found")).to_have_text(f"Match {TURNS} of {TURNS}")
    expect(page.get_by_text(f"Answer {TURNS - 1}", exact=True)).to_be_in_viewport()
    assert page.evaluate("CSS.highlights.get('found').size") > 10
    page.get_by_role("link", name="Next match").click()
    expect(page.locator(".found")).to_have_text(f"Match 1 of {TURNS}")
    expect(page.get_by_text("Answer 0", exact=True)).to_be_in_viewport()
    assert page.evaluate("window.isSamePage")


def test_the_last_message_stays_in_view_while_earlier_ones_are_loaded(tab: BrowserPage) -> None:
    page = open_session(tab)
    row(page, 159).click()
    last = page.get_by_text(f"Answer {TURNS - 1}", exact=True)
    expect(last).to_be_in_viewport()
    page.wait_for_timeout(1500)  # earlier messages are added above
    assert page.locator(".window").count() > 1
    expect(last).to_be_in_viewport()


def test_a_search_shows_its_first_match(browser: Browser, address: str) -> None:
    with open_page(browser, address, viewport={"width": 1600, "height": 420}) as tab:
        page = open_session(tab, "?find=board")
        expect(page.locator("pre.diff", has_text="board")).to_be_in_viewport()


def test_a_day_is_named_once(tab: BrowserPage) -> None:
    page = open_session(tab, "?at=200#m200")
    expect(page.locator("#m90")).to_be_attached()  # an earlier window
    expect(page.locator(".window .day")).not_to_have_count(1)
    expect(page.locator(".window .day:visible")).to_have_count(1)


def test_a_code_block_is_copied(browser: Browser, address: str) -> None:
    with open_page(browser, address, permissions=["clipboard-read", "clipboard-write"]) as tab:
        page = open_session(tab)
        block = page.locator(".code").first
        block.hover()
        block.get_by_role("button", name="copy").click()
        assert page.evaluate("navigator.clipboard.readText()") == "zone = 1"


def test_the_minimap_grows_with_the_session(browser: Browser, tmp_path: Path) -> None:
    session = Transcript(LONG_ID, seed=4, cwd="/home/zoe/ferry")
    for turn in range(30):
        session.user(f"Ferry {turn}?").assistant("At nine.")
    session.write(tmp_path / "claude")
    roots = [NamedRoot("claude-code", tmp_path / "claude")]

    def open_history() -> History:
        return History(roots=roots, home=tmp_path / "home")

    with open_history() as history:
        history.sync()
    with run_server(lambda: create_app(open_history, TOKEN)) as address, open_page(browser, address) as tab:
        page = open_session(tab)
        expect(page.locator(".minimap")).to_have_attribute("data-total", "60")
        session.user("And the last one?").assistant("At ten.").write(tmp_path / "claude")
        expect(page.locator(".minimap")).to_have_attribute("data-total", "62", timeout=20_000)
        expect(page.locator(".minimap a")).to_have_count(62)
        expect(page.locator(".minimap-card")).to_have_count(1)


def test_code_in_a_folded_call_gets_its_colors_when_it_is_opened(tab: BrowserPage) -> None:
    page = open_session(tab)
    id_ = page.locator("details.tool[data-plain]", has_text="echo 3").first.get_attribute("id")
    call = page.locator(f"#{id_}")
    command = call.locator("pre.command")
    assert command.locator(".k-nb").count() == 0
    assert command.inner_text() == ""  # folded
    call.locator("summary").click()
    expect(command.locator(".k-nb")).to_have_text("echo")
    assert command.inner_text() == "echo 3"
    expect(call.get_by_role("button", name="copy")).to_have_count(1)
