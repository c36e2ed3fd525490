"""The journal of a repository is shown by day."""

import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.web.conftest import OpenHistory, text_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

HOSTILE_DAY = "2020-02-02"
HOSTILE = (
    "# <script>alert(1)</script>\n\n[x](javascript:alert(1)) ![y](https://evil.example/z.png) <b>bold</b>\n"
)


@pytest.fixture(scope="module")
def tideline(demo_history: OpenHistory) -> Iterator[str]:
    """The repository with an entry of its last commit, and a file that the user wrote."""
    with demo_history() as history:
        found = next(path for path in history.commits.repositories() if Path(path).name == "tideline")
        folder = history.journal.folder(found)
        history.journal.write("HEAD", found)
    (folder / "daily" / f"{HOSTILE_DAY}-journal.md").write_text(HOSTILE)
    yield found
    shutil.rmtree(folder)


def test_the_journal_shows_the_last_day_with_entries(
    client: TestClient, tideline: str, demo_history: OpenHistory
) -> None:
    html = client.get("/journal", params={"repo": tideline}).text
    with demo_history() as history:
        last = history.journal.days(tideline)[0].isoformat()
    text = text_of(html)
    assert "Release 0.4.0" in text
    assert last in text and HOSTILE_DAY in text
    assert "backscroll:entry" not in html
    links = re.findall(r'<a href="([^"]+)"><code>', html)
    assert [url.split("/")[1] for url in links] == ["commits", "sessions"]
    for url in links:
        page = client.get(unescape(url))
        assert page.status_code == 200
        assert "0.4.0" in page.text


def test_markdown_of_the_journal_runs_and_loads_nothing(client: TestClient, tideline: str) -> None:
    html = client.get("/journal", params={"repo": tideline, "day": HOSTILE_DAY}).text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "&lt;b&gt;bold" in html
    for unwanted in ("<script>", 'href="javascript:', "<img", "<b>bold"):
        assert unwanted not in html


def test_a_repository_without_a_journal_names_the_command(
    client: TestClient, demo_history: OpenHistory
) -> None:
    with demo_history() as history:
        other = next(path for path in history.commits.repositories() if Path(path).name == "lintel")
    assert "backscroll journal --month" in client.get("/journal", params={"repo": other}).text


@pytest.mark.parametrize("day", ["2020-02-03", "x", "../../../etc/passwd", "today"])
def test_a_day_without_a_file_is_not_found(client: TestClient, tideline: str, day: str) -> None:
    assert client.get("/journal", params={"repo": tideline, "day": day}).status_code == 404


def test_the_journal_of_another_folder_is_not_read(client: TestClient) -> None:
    assert client.get("/journal", params={"repo": "/etc"}).status_code == 400
