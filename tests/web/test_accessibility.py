"""axe-core finds no fault on any page, in light and dark, on a wide screen and on a phone.

axe-core is installed from npm into the folder for temporary files, once. Without npm or a registry, the tests
are skipped.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

import pytest
from playwright.sync_api import Browser, Page

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.sync import SyncStatus
from backscroll.web.app import create_app
from backscroll.web.served_history import ServedHistory
from tests.web.browser import CHROMIUM, open_page, run_server
from tests.web.conftest import CLOCKS, TOKEN
from tests.web.long_session import LONG_URL, write_long_history

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

PATHS = [
    "/",
    "/?metric=cost&stack=model",
    "/sessions?source=claude-code",
    "/search?q=clocks",
    "/search?q=test+role:tool+since:2026-07",
    "/search/facets?q=test",
    f"/sessions/{CLOCKS}?find=utc",
    "/sessions/f841ceec",
    f"/sessions/{CLOCKS}/messages/1",
    "/commits",
    "/commits/HEAD",
    "/files?path=build.ts",
    "/files",
    "/journal",
    "/health",
    "/nothing",
]
NPM_TIMEOUT_SECONDS = 60


@pytest.fixture(scope="module")
def axe() -> str:
    """Return the source of axe-core."""
    folder = Path(gettempdir(), "backscroll-axe-core")
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    npm = shutil.which("npm")
    if not script.is_file() and npm is not None:
        command = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), "axe-core"]
        subprocess.run(command, check=False, capture_output=True, timeout=NPM_TIMEOUT_SECONDS)
    if not script.is_file():
        pytest.skip("axe-core cannot be installed from npm")
    return script.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def long_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    open_history = write_long_history(tmp_path_factory.mktemp("long"))
    with run_server(lambda: create_app(open_history, TOKEN, auto_sync=False)) as address:
        yield address


@pytest.mark.parametrize("path", ["/", f"/sessions/{CLOCKS}?find=utc"])
def test_a_main_page_has_no_accessibility_fault(browser: Browser, address: str, axe: str, path: str) -> None:
    with open_page(browser, address, bypass_csp=True) as tab:
        page = tab.open(path)
        tab.wait_for_scripts()
        assert not faults(page, axe)


@pytest.mark.soak
@pytest.mark.parametrize(("scheme", "width"), [("light", 1360), ("dark", 1360), ("light", 390)])
def test_no_page_has_an_accessibility_fault(
    browser: Browser, address: str, axe: str, scheme: str, width: int
) -> None:
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}, "bypass_csp": True}
    with open_page(browser, address, **options) as tab:
        tab.open(f"/launch?token={TOKEN}")
        for path in PATHS:
            page = tab.open(path)
            tab.wait_for_scripts()
            page.evaluate("for (const table of document.querySelectorAll('.table, .more')) table.open = true")
            assert not faults(page, axe), path
        page = tab.open("/sessions")
        tab.wait_for_scripts()
        page.keyboard.press("Control+k")
        page.keyboard.type("clock")
        page.get_by_role("option").first.wait_for()
        assert not faults(page, axe), "palette"
        tab.problems.clear()  # the page that does not exist logs its status


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_empty_archive_and_a_running_sync_have_no_accessibility_fault(
    browser: Browser, axe: str, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def open_history() -> History:
        return History(roots=[NamedRoot("claude-code", tmp_path / "claude")], home=tmp_path / "home")

    app = create_app(open_history, TOKEN, auto_sync=False)
    options = {"color_scheme": scheme, "bypass_csp": True}
    with run_server(lambda: app) as address, open_page(browser, address, **options) as tab:
        page = tab.open(f"/launch?token={TOKEN}")
        tab.wait_for_scripts()
        assert not faults(page, axe)
        status = SyncStatus(is_complete=False, is_running=True, percent=37, remaining_seconds=150.0)
        monkeypatch.setattr(ServedHistory, "sync_status", lambda served: status)
        for path in ("/", "/sessions"):
            page = tab.open(path)
            tab.wait_for_scripts()
            assert not faults(page, axe), path


@pytest.mark.soak
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_long_session_has_no_accessibility_fault(
    browser: Browser, long_address: str, axe: str, scheme: str
) -> None:
    options = {"color_scheme": scheme, "viewport": {"width": 1600, "height": 900}, "bypass_csp": True}
    with open_page(browser, long_address, **options) as tab:
        page = tab.open(f"{LONG_URL}?find=Answer")
        tab.wait_for_scripts()
        page.locator(".minimap a:has(.edits)").click()
        page.locator("pre.diff").first.wait_for()
        assert not faults(page, axe)
        page.get_by_role("button", name="Expand all").click()
        page.keyboard.press("d")  # diffs side by side
        page.locator('.minimap a[tabindex="0"]').focus()
        assert not faults(page, axe)


def faults(page: Page, axe: str) -> list[tuple[str, str]]:
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [(fault["id"], fault["nodes"][0]["target"]) for fault in found]
