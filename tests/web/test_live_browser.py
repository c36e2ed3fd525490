"""Pages of a session that grows, in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, expect

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing.claude_code import Transcript
from backscroll.web.app import create_app
from tests.web.browser import CHROMIUM, open_page, run_server
from tests.web.conftest import TOKEN

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

SESSION_ID = "10000000-0000-4000-8000-000000000031"


class Served(NamedTuple):
    """A server that follows a session."""

    address: str
    session: Transcript
    root: Path

    def add_messages(self) -> None:
        """Add a prompt and an answer to the session."""
        self.session.user("And now?").assistant("Done.")
        self.session.write(self.root)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    session = Transcript(SESSION_ID, seed=9)
    session.user("Start").assistant("Started.")
    session.write(tmp_path / "claude")
    roots = [NamedRoot("claude-code", tmp_path / "claude")]

    def open_history() -> History:
        return History(roots=roots, home=tmp_path / "home")

    with open_history() as history:
        history.sync()
    with run_server(lambda: create_app(open_history, TOKEN)) as address:
        yield Served(address, session, tmp_path / "claude")


def test_the_facts_of_a_session_follow_its_messages(browser: Browser, served: Served) -> None:
    with open_page(browser, served.address) as tab:
        page = tab.open(f"/sessions/{SESSION_ID}")
        tab.wait_for_scripts()
        facts = page.locator(".about .facts")
        expect(facts).to_contain_text("Messages2")
        tokens = facts.locator("div", has_text="Tokens").inner_text()
        served.add_messages()
        expect(page.get_by_text("And now?").first).to_be_visible()
        expect(facts).to_contain_text("Messages4")
        expect(facts.locator("div", has_text="Tokens")).not_to_have_text(tokens)


def test_the_figures_of_the_home_page_follow_a_session(browser: Browser, served: Served) -> None:
    with open_page(browser, served.address) as tab:
        page = tab.open("/?range=all")
        tab.wait_for_scripts()
        messages = page.locator(".card", has_text="Messages").locator("b")
        expect(messages).to_have_text("2")
        served.add_messages()
        expect(messages).to_have_text("4", timeout=25_000)
        expect(page.locator(".entry-row")).to_contain_text("4 messages")
