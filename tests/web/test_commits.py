"""Commits are shown with the sessions behind them."""

import re
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from backscroll.commits import commits
from tests.web.conftest import OpenHistory, text_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture(scope="module")
def tideline(demo_history: OpenHistory) -> str:
    with demo_history() as history:
        return next(path for path in history.commits.repositories() if Path(path).name == "tideline")


def test_commits_of_the_last_used_repository_are_listed(client: TestClient) -> None:
    html = client.get("/commits").text
    assert html.count('<span class="choice-label">') == 5
    assert 'class="row commit"' in html


def test_a_commit_names_its_sessions(client: TestClient, tideline: str, demo_history: OpenHistory) -> None:
    html = client.get(f"/commits?repo={quote(tideline)}").text
    with demo_history() as history:
        commits = history.list_commits(tideline, limit=30).data
    assert html.count('class="row commit"') == len(commits)
    linked = re.findall(r'<li><span class="source[^>]*>[^<]*</span> <a href="/sessions/([^"]+)"', html)
    assert linked == [one.session_ref for commit in commits for one in commit.sessions]
    assert linked


def test_a_commit_shows_evidence_and_prompts_with_links(client: TestClient, tideline: str) -> None:
    html = client.get(f"/commits?repo={quote(tideline)}").text
    url = re.search(r'href="(/commits/[^"]+)"><span class="row-title">Store departures in UTC', html)
    assert url is not None
    page = client.get(url[1].replace("&amp;", "&")).text
    text = text_of(page)
    assert "503 in the night the clocks went back" in text
    assert "content" in text
    prompt = re.search(r'<ol class="turns"><li><a href="([^"#]+)#m\d+">([^<]+)', page)
    assert prompt is not None
    assert "Then store UTC" in prompt[2]
    assert client.get(prompt[1]).status_code == 200


def test_a_commit_shows_its_changed_lines(
    client: TestClient, tideline: str, demo_history: OpenHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with demo_history() as history:
        commit = next(
            one for one in history.list_commits(tideline, limit=30).data if "departures in UTC" in one.subject
        )
        files = history.commits.changed_files(commit.sha, tideline)
    url = f"/commits/{commit.sha}?repo={quote(tideline)}"
    page = client.get(url).text
    shown = re.findall(r'<details class="tool file-diff" open><summary><code>([^<]+)</code>', page)
    assert shown == [file.path for file in files]
    diff = page.partition('<pre class="diff">')[2].partition("</pre>")[0]
    assert diff.count("<ins") == files[0].added
    assert diff.count("<del") == files[0].removed
    assert 'class="same"' in diff
    monkeypatch.setattr("backscroll.web.pages.repository.MAX_OPEN_LINES", 0)
    assert client.get(url).text.count('<details class="tool file-diff"><summary>') == len(files)
    monkeypatch.setattr("backscroll.web.pages.repository.MAX_DIFF_LINES", 0)
    without = client.get(url).text
    assert 'class="diff"' not in without
    for file in files:
        assert f"<code>{file.path}</code></a>" in without


@pytest.mark.parametrize("repository", ["/", "/etc", "../..", "", "~"])
def test_only_repositories_with_sessions_are_read(client: TestClient, repository: str) -> None:
    response = client.get("/commits/HEAD", params={"repo": repository})
    assert response.status_code == (200 if not repository else 400)


@pytest.mark.parametrize("sha", ["0" * 40, "--help", "nothing", "HEAD~9999", "-", "x;y", "a\0b"])
def test_an_unknown_commit_is_not_found(client: TestClient, tideline: str, sha: str) -> None:
    assert client.get(f"/commits/{quote(sha)}?repo={quote(tideline)}").status_code == 404


@pytest.mark.parametrize("page", ["0", "x", "-1", "0000000001" + "9" * 5000])
@pytest.mark.parametrize("path", ["commits", "sessions", "search"])
def test_an_invalid_page_number_is_explained(client: TestClient, path: str, page: str) -> None:
    assert client.get(f"/{path}?page={page}").status_code == 400


def test_a_page_after_the_last_commit_is_empty(client: TestClient) -> None:
    assert "No commits on this page" in client.get("/commits?page=50").text


def test_a_commit_without_a_session_names_those_that_were_open(
    client: TestClient, tideline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "link_commits", lambda *given, **_: dict.fromkeys(given[3], ()))
    html = client.get(f"/commits?repo={quote(tideline)}").text
    assert "<small>also open at the time</small>" in html
    url = re.search(r'href="(/commits/[^"]+)"><span class="row-title">Store departures in UTC', html)
    assert url is not None
    page = client.get(url[1].replace("&amp;", "&")).text
    assert "No session is known to have led to this commit." in text_of(page)
    opened = re.search(r'<h2>Also open at the time</h2>\s*<ul class="linked">.*?<a href="([^"#]+)', page)
    assert opened is not None
    assert client.get(opened[1]).status_code == 200
