"""Files are shown with the session behind each line, and nothing outside of a repository is."""

import html as html_escapes
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from backscroll.history.history import History
from backscroll.model.commit import BlameLine
from backscroll.model.text import sanitize
from backscroll.web.app import create_app
from backscroll.web.pages.repository import MAX_LINE_CHARS, _html_lines
from tests.web.conftest import ADDRESS, TOKEN, OpenHistory, text_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(scope="module")
def tideline(demo_history: OpenHistory) -> str:
    with demo_history() as history:
        return next(path for path in history.commits.repositories() if Path(path).name == "tideline")


def _get(client: TestClient, repository: str, path: str, **query: object) -> str:
    response = client.get("/files", params={"repo": repository, "path": path, **query})
    assert response.status_code == 200, text_of(response.text)
    return response.text


def _lines(html: str) -> list[str]:
    shown = re.findall(r'<span class="line" id="L\d+"><span [^>]*>\d+</span>(.*?)\n</span>', html)
    return [html_escapes.unescape(re.sub(r"<[^>]*>", "", line)) for line in shown]


@pytest.mark.parametrize("path", ["/files", "/commits", "/journal"])
def test_a_history_without_repositories_is_explained(tmp_path: Path, path: str) -> None:
    app = create_app(lambda: History(home=tmp_path / "home", roots=[]), TOKEN, auto_sync=False)
    with TestClient(app, base_url=ADDRESS) as client:
        page = client.get(path)
        assert page.status_code == 200
        assert "No folder of your sessions is a git repository" in text_of(page.text)
        commit = client.get("/commits/abc")
        assert commit.status_code == 400
        assert "No folder of your sessions is a git repository" in text_of(commit.text)


def test_a_file_shows_every_line_with_its_session_and_prompt(
    client: TestClient, tideline: str, demo_history: OpenHistory
) -> None:
    html = _get(client, tideline, "tideline/timetable.py")
    assert _lines(html) == Path(tideline, "tideline/timetable.py").read_text().splitlines()
    assert '<span class="k-k">' in html
    text = text_of(html)
    with demo_history() as history:
        blamed = history.blame_file("tideline/timetable.py", tideline)
        titles = {history.find(line.session_ref).title for line in blamed if line.session_ref}
    assert titles
    assert all(title in html_escapes.unescape(text) for title in titles if title)
    prompt = re.search(r'<p class="run-prompt"><a href="([^"#]+)(#m\d+)">([^<]{20})', html)
    assert prompt is not None
    session = client.get(html_escapes.unescape(prompt[1])).text
    assert f'id="{prompt[2][1:]}"' in session
    assert prompt[3] in session


def test_a_commit_leads_to_its_files_as_of_that_commit(client: TestClient, tideline: str) -> None:
    html = client.get(f"/commits/HEAD?repo={quote(tideline)}").text
    link = re.search(r'<a href="(/files\?[^"]+path=CHANGELOG.md[^"]*)">Sessions behind each line</a>', html)
    assert link is not None
    page = client.get(html_escapes.unescape(link[1])).text
    assert "As of the commit" in page
    assert "Release notes for 0.4.0" in page


def test_folders_lead_to_files(client: TestClient, tideline: str) -> None:
    html = client.get(f"/files?repo={quote(tideline)}").text
    assert html.index("tideline/</span>") < html.index("CHANGELOG.md</span>")
    link = re.search(r'<a class="row-link" href="([^"]+)"><span class="row-title">tideline/', html)
    assert link is not None
    inside = client.get(html_escapes.unescape(link[1])).text
    assert "timetable.py</span>" in inside
    assert "CHANGELOG.md" not in inside


def test_a_long_file_has_pages_that_contain_every_line_once(
    client: TestClient, tideline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backscroll.web.pages.repository.PAGE_LINES", 20)
    found: list[str] = []
    url: str | None = f"/files?repo={quote(tideline)}&path=tideline/timetable.py"
    while url is not None:
        html = client.get(url).text
        found += _lines(html)
        following = re.search(r'rel="next" href="([^"]+)"', html)
        url = html_escapes.unescape(following[1]) if following else None
    assert found == Path(tideline, "tideline/timetable.py").read_text().splitlines()


@pytest.mark.parametrize(
    "path",
    [
        "../website/README.md",
        "tideline/../../website/README.md",
        "..",
        "/etc/passwd",
        "//etc/passwd",
        "tideline/../../../../../../etc/passwd",
        "..\\website\\README.md",
        "C:\\Windows\\win.ini",
        ".git/config",
        ".git",
        "./.git/config",
        ":(top).git/config",
        ":/",
        "*.md",
        "-h",
        "nothing.txt",
        "a\0b",
        "x" * 300,
        "x/" * 1000,
    ],
)
def test_no_path_leads_out_of_the_tracked_files(client: TestClient, tideline: str, path: str) -> None:
    for query in ({}, {"ref": "HEAD"}):
        response = client.get("/files", params={"repo": tideline, "path": path, **query})
        assert response.status_code in (400, 404)
        assert 'class="line"' not in response.text
        assert "root:" not in response.text


@pytest.mark.parametrize("repository", ["/", "/etc", "..", "~"])
def test_files_of_other_folders_are_not_read(client: TestClient, repository: str) -> None:
    assert client.get("/files", params={"repo": repository, "path": "passwd"}).status_code == 400


@pytest.mark.parametrize("query", [{"line": "0"}, {"line": "x"}, {"line": "9999"}, {"line": "9" * 30}])
def test_an_invalid_line_is_explained(client: TestClient, tideline: str, query: dict[str, str]) -> None:
    response = client.get("/files", params={"repo": tideline, "path": "README.md", **query})
    assert response.status_code == 400


@pytest.mark.parametrize("ref", ["--help", "nothing", "0" * 40, "HEAD:README.md"])
def test_an_unknown_commit_has_no_files(client: TestClient, tideline: str, ref: str) -> None:
    params = {"repo": tideline, "path": "README.md", "ref": ref}
    assert client.get("/files", params=params).status_code == 404


def test_a_file_that_is_too_large_is_not_read(
    client: TestClient, tideline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backscroll.web.pages.repository.MAX_FILE_BYTES", 10)
    response = client.get("/files", params={"repo": tideline, "path": "README.md"})
    assert response.status_code == 404
    assert "too large" in response.text


def _blame_lines(texts: Sequence[str]) -> list[BlameLine]:
    unknown = dict.fromkeys(set(BlameLine.__struct_fields__) - {"line", "text"})
    return [BlameLine(line=n, text=text, **unknown) for n, text in enumerate(texts, 1)]  # type: ignore[arg-type]


@given(
    texts=st.lists(
        st.text(st.characters(blacklist_characters="\n"))
        | st.sampled_from(['"""', "'''", "<script>", "`${", "/*", ""]),
        min_size=1,
        max_size=8,
    ),
    name=st.sampled_from(["a.py", "a.js", "a.html", "a.md", "a.sh", "README", "a.zzz"]),
)
def test_every_line_keeps_its_text_and_creates_no_element(texts: list[str], name: str) -> None:
    shown = _html_lines(name, _blame_lines(texts))
    assert len(shown) == len(texts)
    for line, text in zip(shown, texts, strict=True):
        assert set(re.findall(r"<[^>]*>", line)) <= {"</span>", *re.findall(r'<span class="[\w -]*">', line)}
        plain = html_escapes.unescape(re.sub(r"<[^>]*>", "", line))
        assert plain == sanitize(text[:MAX_LINE_CHARS]).replace("\n", " ")
