"""An empty archive explains what was searched, and opens a demo that is never mixed with other sessions."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient

from backscroll.config import NamedRoot
from backscroll.history.demo import DemoArchive
from backscroll.history.history import History
from backscroll.testing import demo
from backscroll.testing.claude_code import Transcript
from backscroll.web.app import create_app
from tests.web.browser import CHROMIUM, open_page, run_server
from tests.web.conftest import ADDRESS, CLOCKS, PORT, TOKEN, OpenHistory, text_of

COOKIE = f"backscroll-demo-{PORT}"


@pytest.fixture
def empty(tmp_path: Path) -> OpenHistory:
    """A history without sessions. One of its folders exists."""
    (tmp_path / "cursor").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    roots = [
        NamedRoot("claude-code", tmp_path / "claude"),
        NamedRoot("cursor", tmp_path / "cursor"),
        NamedRoot("cursor-cli", tmp_path / "link"),
    ]

    def open_history() -> History:
        return History(roots=roots, home=tmp_path / "home")

    with open_history() as history:
        history.sync()
    return open_history


@pytest.fixture
def opened(empty: OpenHistory) -> Iterator[TestClient]:
    """A client with the token that has opened the demo."""
    app = create_app(empty, TOKEN, auto_sync=False)
    with TestClient(app, base_url=ADDRESS, headers={"Origin": ADDRESS}) as client:
        client.get(f"/launch?token={TOKEN}")
        assert client.post("/demo", data={"action": "open"}).status_code == 200
        yield client


@pytest.mark.parametrize("path", ["/", "/sessions"])
def test_an_empty_archive_names_every_searched_folder_and_what_was_found(
    empty: OpenHistory, tmp_path: Path, path: str
) -> None:
    with TestClient(create_app(empty, TOKEN, auto_sync=False), base_url=ADDRESS) as client:
        text = text_of(client.get(path).text)
    assert f"claude-code {tmp_path / 'claude'} not found" in text.replace("  ", " ")
    assert f"cursor {tmp_path / 'cursor'} found, without sessions" in text.replace("  ", " ")
    assert f"cursor-cli {tmp_path / 'link'} broken link" in text.replace("  ", " ")
    assert "backscroll demo ~/demo" in text  # this client has no token
    assert "Open the demo history" not in text


def test_the_demo_has_an_archive_of_its_own_and_a_way_back(
    opened: TestClient, empty: OpenHistory, tmp_path: Path
) -> None:
    home = opened.get("/").text
    assert "Demo history." in home
    assert "All 46" in home
    assert "deleted by the tool" in home
    assert opened.get("/api/v1/sessions").json()["pagination"]["total"] == 46
    opened.post(f"/sessions/{CLOCKS}", data={"action": "star"})
    with empty() as history, DemoArchive(history).open() as sample:
        assert history.list_sessions().pagination.total == 0
        assert sample.find(CLOCKS).is_starred
        assert sample.archive_path == tmp_path / "home" / "demo" / "archive" / "archive.db"
    own = opened.post("/demo", data={"action": "leave"}).text
    assert "Demo history." not in own
    assert "No history found" in own


def test_a_second_click_opens_the_same_demo(opened: TestClient) -> None:
    opened.post(f"/sessions/{CLOCKS}", data={"action": "star"})
    opened.post("/demo", data={"action": "leave"})
    opened.post("/demo", data={"action": "open"})
    assert "Remove the star" in opened.get(f"/sessions/{CLOCKS}").text


def test_the_demo_survives_a_restart_of_the_server(opened: TestClient, empty: OpenHistory) -> None:
    with TestClient(create_app(empty, TOKEN, auto_sync=False), base_url=ADDRESS) as client:
        assert "No history found" in client.get("/").text
        client.cookies.set(COOKIE, "1")
        assert "All 46" in client.get("/").text


def test_the_cookie_alone_does_not_create_a_demo(empty: OpenHistory, tmp_path: Path) -> None:
    with TestClient(create_app(empty, TOKEN, auto_sync=False), base_url=ADDRESS) as client:
        client.cookies.set(COOKIE, "1")
        assert "No history found" in client.get("/").text
    assert not (tmp_path / "home" / "demo").exists()


def test_the_demo_needs_the_token_and_the_origin(empty: OpenHistory, tmp_path: Path) -> None:
    app = create_app(empty, TOKEN, auto_sync=False)
    with TestClient(app, base_url=ADDRESS) as client:
        assert client.post("/demo", data={"action": "open"}, headers={"Origin": ADDRESS}).status_code == 401
        client.get(f"/launch?token={TOKEN}")
        assert client.post("/demo", data={"action": "open"}).status_code == 403
        headers = {"Origin": "http://evil.example"}
        assert client.post("/demo", data={"action": "open"}, headers=headers).status_code == 403
        assert client.post("/demo", data={"action": "eat"}, headers={"Origin": ADDRESS}).status_code == 400
    assert not (tmp_path / "home" / "demo").exists()


def test_a_demo_whose_sync_was_killed_is_completed(empty: OpenHistory) -> None:
    with empty() as history:
        archive = DemoArchive(history)
    demo.write(archive.folder)
    assert not archive.is_written
    archive.write()
    with archive.open() as sample:
        assert sample.list_sessions().pagination.total == 46


def test_a_folder_that_is_not_a_demo_is_not_replaced(empty: OpenHistory, tmp_path: Path) -> None:
    note = tmp_path / "home" / "demo" / "note.txt"
    note.parent.mkdir(parents=True)
    note.write_text("mine")
    app = create_app(empty, TOKEN, auto_sync=False)
    with TestClient(app, base_url=ADDRESS, headers={"Origin": ADDRESS}) as client:
        client.get(f"/launch?token={TOKEN}")
        response = client.post("/demo", data={"action": "open"})
    assert response.status_code == 500
    assert "is not empty" in response.text
    assert note.read_text() == "mine"


def test_the_roots_are_those_that_the_demo_writes(tmp_path: Path) -> None:
    written = demo.write(tmp_path / "robin")
    assert written.roots == {source: str(tmp_path / "robin" / name) for source, name in demo.ROOTS.items()}


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_one_click_opens_the_demo_and_one_leads_back(
    browser: Browser, empty: OpenHistory, tmp_path: Path
) -> None:
    with run_server(lambda: create_app(empty, TOKEN)) as address, open_page(browser, address) as tab:
        page = tab.open(f"/launch?token={TOKEN}")
        page.get_by_role("button", name="Open the demo history").click()
        expect(page.get_by_role("heading", name="Recent sessions")).to_be_visible()
        page.get_by_role("link", name="All 46").click()
        expect(page.get_by_role("complementary", name="Demo")).to_contain_text("made up")
        page.get_by_role("button", name="Back to your history").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("No history found")
        Transcript(seed=5, cwd="/home/zoe/quay").user("a new quay").assistant("Yes.").write(
            tmp_path / "claude"
        )
        expect(page.get_by_text("a new quay").first).to_be_visible(timeout=20_000)
        expect(page.get_by_role("link", name="All 1")).to_be_visible()
