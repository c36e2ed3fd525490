"""An archive of the demo, and clients of the web app for it."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from starlette.testclient import TestClient

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.testing import demo
from backscroll.web.app import create_app
from tests.web.browser import BrowserPage, open_browser, open_page, run_server

TOKEN = "t" * 43
PORT = 7433
ADDRESS = f"http://127.0.0.1:{PORT}"
CLOCKS = "claude-code:a4a9482e-facd-4d33-bfe9-ce4b37bd7124"  # "503 in the night the clocks went back"

OpenHistory = Callable[[], History]


@pytest.fixture(scope="session")
def demo_history(tmp_path_factory: pytest.TempPathFactory) -> OpenHistory:
    """Sync the demo into an archive. One session is deleted afterwards."""
    folder: Path = tmp_path_factory.mktemp("web")
    written = demo.write(folder / "robin")
    roots = [NamedRoot(source, Path(path)) for source, path in written.roots.items()]

    def open_history() -> History:
        return History(roots=roots, home=folder / "home")

    with open_history() as history:
        history.sync()
        demo.delete_session(written)
        history.sync()
    return open_history


@pytest.fixture(scope="session")
def client(demo_history: OpenHistory) -> Iterator[TestClient]:
    """A client without the token."""
    with TestClient(create_app(demo_history, TOKEN, auto_sync=False), base_url=ADDRESS) as client:
        yield client


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Chromium, for all tests of the package. Other tests could not run an event loop while it is open."""
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(demo_history: OpenHistory) -> Iterator[str]:
    """The address of a server of the demo."""
    with run_server(lambda: create_app(demo_history, TOKEN, auto_sync=False)) as address:
        yield address


@pytest.fixture
def tab(browser: Browser, address: str) -> Iterator[BrowserPage]:
    """A page of the browser."""
    with open_page(browser, address) as tab:
        yield tab


@pytest.fixture
def writer(demo_history: OpenHistory) -> Iterator[TestClient]:
    """A client that was opened with the launch address."""
    app = create_app(demo_history, TOKEN, auto_sync=False)
    with TestClient(app, base_url=ADDRESS, headers={"Origin": ADDRESS}) as client:
        assert client.get(f"/launch?token={TOKEN}").status_code == 200
        yield client


def text_of(html: str) -> str:
    """Return the visible text of a page in one line."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))
