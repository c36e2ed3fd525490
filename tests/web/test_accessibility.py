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
from playwright.sync_api import Browser

from backscroll.web.app import create_app
from tests.web.browser import CHROMIUM, open_browser, open_page, run_server
from tests.web.conftest import CLOCKS, TOKEN, OpenHistory

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

PATHS = [
    "/",
    "/sessions?source=claude-code",
    "/search?q=clocks",
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
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(demo_history: OpenHistory) -> Iterator[str]:
    with run_server(lambda: create_app(demo_history, TOKEN, auto_sync=False)) as address:
        yield address


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
            page.evaluate(axe)
            found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
            faults = [(fault["id"], fault["nodes"][0]["target"]) for fault in found]
            assert not faults, path
        tab.problems.clear()  # the page that does not exist logs its status
