"""The command palette finds pages, actions, workspaces and sessions with the keyboard alone."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.web.app import create_app
from tests.export.sample_sessions import HOSTILE, write_hostile
from tests.web.browser import CHROMIUM, BrowserPage, open_page, run_server
from tests.web.conftest import CLOCKS, TOKEN

in_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def suggestions(client: TestClient, text: str) -> dict[str, list[str]]:
    """Return the labels of each group."""
    response = client.get("/palette", params={"q": text})
    assert response.status_code == 200
    found: dict[str, list[str]] = {}
    for one in response.json()["data"]:
        found.setdefault(one["group"], []).append(one["label"])
    return found


def test_sessions_are_found_by_words_of_the_title_in_any_order(client: TestClient) -> None:
    found = client.get("/palette", params={"q": "NIGHT 503"}).json()["data"]
    assert found[0]["label"] == "503 in the night the clocks went back"
    assert found[0]["url"] == f"/sessions/{CLOCKS}"
    assert found[0]["detail"] == "tideline claude-code"


def test_workspaces_lead_to_their_sessions(client: TestClient) -> None:
    (workspace,) = [
        one for one in client.get("/palette?q=lint").json()["data"] if one["group"] == "Workspaces"
    ]
    assert workspace["label"] == "lintel"
    listed = client.get(workspace["url"]).text
    count = int(re.match(r"(\d+) session", workspace["detail"])[1])  # type: ignore[index]
    assert listed.count('class="row-link"') == count > 0


def test_messages_are_suggested_for_sessions_without_the_words_in_their_title(client: TestClient) -> None:
    found = suggestions(client, "remind me clo")
    assert "Sessions" not in found
    assert any("clocks" in label for label in found["Messages"])


def test_the_words_of_a_message_are_marked(client: TestClient) -> None:
    found = [one for one in client.get("/palette?q=clock").json()["data"] if one["group"] == "Messages"]
    assert found
    for one in found:
        assert {part.lower() for part in one["parts"][1::2]} <= {"clock", "clocks"}
        assert one["parts"][1::2]
        assert "".join(one["parts"]) == one["label"]
        assert "\n" not in one["label"]


def test_without_a_text_the_last_sessions_are_suggested(client: TestClient) -> None:
    found = suggestions(client, "")
    assert found["Sessions"][0] == "A page about the year"
    assert len(found["Workspaces"]) == 4
    assert "Messages" not in found


@pytest.mark.parametrize(
    "text", ["?", "*", '"', "-", "role:", "%", "x" * 5000, "\x00", "a OR", "workspace:x"]
)
def test_any_text_is_allowed(client: TestClient, text: str) -> None:
    assert client.get("/palette", params={"q": text}).status_code == 200


@pytest.mark.parametrize(
    ("title", "count"), [("CLOCKS", 1), ("night clocks", 1), ("the year", 1), ("zebra", 0)]
)
def test_the_list_is_filtered_by_words_of_the_title(client: TestClient, title: str, count: int) -> None:
    html = client.get("/sessions", params={"title": title}).text
    assert html.count('class="row-link"') == count


def test_a_title_that_the_user_has_set_replaces_the_original(writer: TestClient) -> None:
    writer.post(f"/sessions/{CLOCKS}", data={"action": "rename", "text": "Straße der ÜBUNG"})
    try:
        assert "Straße" in writer.get("/sessions", params={"title": "strasse übung"}).text
        assert 'class="row-link"' not in writer.get("/sessions", params={"title": "503 night"}).text
    finally:
        writer.post(f"/sessions/{CLOCKS}", data={"action": "rename", "text": ""})


@in_browser
def test_a_session_is_opened_by_its_title(tab: BrowserPage) -> None:
    page = tab.open("/health")
    tab.wait_for_scripts()
    page.keyboard.press("Control+k")
    combobox = page.get_by_role("combobox", name="Go to")
    expect(combobox).to_be_focused()
    page.keyboard.type("remind")
    expect(page.get_by_role("listbox").locator("mark").first).to_have_text("remind")
    combobox.fill("503 nig")
    option = page.get_by_role("option", name=re.compile("^503 in the night"))
    expect(option).to_have_attribute("aria-selected", "true")
    assert combobox.get_attribute("aria-activedescendant") == option.get_attribute("id")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/sessions/{CLOCKS}")


@in_browser
def test_the_arrow_keys_choose_and_escape_closes(tab: BrowserPage) -> None:
    page = tab.open("/sessions")
    tab.wait_for_scripts()
    page.get_by_role("button", name="Command palette").click()
    expect(page.get_by_role("option", name=re.compile("^A page about the year"))).to_be_visible()
    first, second = page.get_by_role("option").nth(0), page.get_by_role("option").nth(1)
    page.keyboard.press("ArrowDown")
    expect(second).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    expect(first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("option").last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("Control+k")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog")).to_be_hidden()


@in_browser
def test_pages_and_actions_are_commands(tab: BrowserPage) -> None:
    page = tab.open("/")
    tab.wait_for_scripts()
    page.keyboard.press("Meta+k")
    page.keyboard.type("light")
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("Control+k")
    page.keyboard.type("all keys")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("heal")
    page.keyboard.press("Enter")
    page.wait_for_url("**/health")
    page.keyboard.press("Control+k")
    page.keyboard.type("xyzzy plugh")
    expect(page.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=xyzzy%20plugh")


@in_browser
def test_the_list_follows_the_title_while_typing(tab: BrowserPage) -> None:
    page = tab.open("/sessions?source=claude-code")
    tab.wait_for_scripts()
    page.get_by_label("Words of the title").fill("clocks")
    expect(page.get_by_role("heading", level=1)).to_have_text("1 session")
    page.wait_for_url("**/sessions?source=claude-code&title=clocks")


@in_browser
def test_hostile_names_stay_text(browser: Browser, tmp_path: Path) -> None:
    write_hostile(tmp_path / "claude")
    roots = [NamedRoot("claude-code", tmp_path / "claude")]

    def open_history() -> History:
        return History(roots=roots, home=tmp_path / "home")

    with open_history() as history:
        history.sync()
        history.annotations.rename("1", HOSTILE)
    app = create_app(open_history, TOKEN, auto_sync=False)
    with run_server(lambda: app) as address, open_page(browser, address) as tab:
        page = tab.open("/")
        tab.wait_for_scripts()
        page.keyboard.press("Control+k")
        page.keyboard.type("alert")
        expect(page.locator("#palette-list").get_by_role("option").first).to_contain_text("alert")
        assert page.locator("#palette-list :is(img, script, a)").count() == 0


@in_browser
def test_without_javascript_the_palette_is_not_there(browser: Browser, address: str) -> None:
    with open_page(browser, address, java_script_enabled=False) as tab:
        page = tab.open("/")
        page.keyboard.press("Control+k")
        expect(page.get_by_role("combobox", name="Go to")).to_have_count(0)
        expect(page.get_by_role("button", name="Command palette")).to_have_count(0)
