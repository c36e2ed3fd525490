"""Every page shows what the history contains."""

import re
from datetime import date, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from backscroll.config import NamedRoot
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.render.humanize import format_cost
from backscroll.testing.claude_code import Transcript
from backscroll.web.app import create_app
from backscroll.web.pages.figures import compute_figures
from backscroll.web.pages.sessions import group_by_date
from backscroll.web.served_history import ResultCache
from tests.web.conftest import ADDRESS, CLOCKS, TOKEN, OpenHistory, text_of


def test_home_shows_recent_sessions_figures_and_deleted_sessions(
    client: TestClient, demo_history: OpenHistory
) -> None:
    response = client.get("/?range=all")
    assert response.status_code == 200
    text = text_of(response.text)
    with demo_history() as history:
        cost = format_cost(history.statistics.report().total)
    for expected in ("A page about the year", "1 session deleted by the tool", "Active time", cost, "419"):
        assert expected in text
    assert response.text.count('class="level-') > 365


@pytest.mark.parametrize("name", ["30d", "90d", "year", "all"])
def test_home_has_figures_of_each_time_range(client: TestClient, name: str) -> None:
    assert 'class="chart bars"' in client.get(f"/?range={name}").text


def test_the_figures_of_a_large_archive_are_loaded_later(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backscroll.web.pages.home.MAX_INLINE_SESSIONS", 10)
    cache = ResultCache(compute_figures, timedelta(minutes=1))
    monkeypatch.setattr("backscroll.web.pages.home.CACHE", cache)
    monkeypatch.setattr("backscroll.web.pages.figures.CACHE", cache)
    html = client.get("/?range=all").text
    assert 'class="chart' not in html
    assert 'data-load="/figures?range=all"' in html
    assert 'class="chart bars"' in client.get("/figures?range=all").text
    assert 'class="chart bars"' in client.get("/?range=all").text  # now they are known


def test_the_list_shows_all_sessions_with_counts_per_filter(
    client: TestClient, demo_history: OpenHistory
) -> None:
    html = client.get("/sessions").text
    assert html.count('class="row-link"') == 46
    for label, count in (("claude-code", 23), ("cursor", 12), ("With edits", 39), ("Deleted by the tool", 1)):
        assert re.search(rf'{label}</span> <span class="choice-count">{count}</span>', html), label


def test_workspaces_with_the_same_name_are_distinguished(client: TestClient) -> None:
    labels = re.findall(r'choice-label">(saltern[^<]*)<', client.get("/sessions").text)
    assert len(labels) == len(set(labels)) == 2
    assert "saltern (ssh-remote+gauge-box:/srv)" in labels


@pytest.mark.parametrize(
    ("query", "filter_"),
    [
        ("source=cursor", Filter(source="cursor")),
        ("workspace=tideline", Filter(workspace="tideline")),
        ("branch=a11y", Filter(branch="a11y")),
        ("model=claude-opus-5", Filter(model="claude-opus-5")),
        ("edits=1", Filter(has_edits=True)),
        ("gone=1", Filter(is_gone=True)),
        ("source=claude-code&edits=1", Filter(source="claude-code", has_edits=True)),
    ],
)
def test_a_filter_lists_the_same_sessions_as_the_library(
    client: TestClient, demo_history: OpenHistory, query: str, filter_: Filter
) -> None:
    with demo_history() as history:
        expected = [summary.ref for summary in history.all_sessions(filter_)]
    html = client.get(f"/sessions?{query}").text
    assert re.findall(r'class="row-link" href="/sessions/([^"]+)"', html) == expected
    assert expected


def test_facets_count_what_each_link_lists(client: TestClient) -> None:
    html = client.get("/sessions?source=claude-code").text
    links = re.findall(
        r'<li><a href="([^"]+)"[^>]*><span class="choice-label">[^<]*</span>'
        r' <span class="choice-count">([\d,]+)</span>',
        html,
    )
    assert len(links) > 8
    for url, count in links:
        if "source=claude-code" not in url:
            continue  # the active filter; its link removes it
        listed = client.get(url.replace("&amp;", "&")).text.count('class="row-link"')
        assert listed == int(count), url


def test_dates_are_filtered_inclusively(client: TestClient) -> None:
    html = client.get("/sessions?since=2026-11-10&until=2026-11-10").text
    assert html.count('class="row-link"') == 1


@pytest.mark.parametrize("query", ["since=soon", "sort=weight", "page=0", "page=x", "page=99999999999"])
def test_an_invalid_state_of_the_list_is_explained(client: TestClient, query: str) -> None:
    response = client.get(f"/sessions?{query}")
    assert response.status_code == 400
    assert "is not a" in response.text


def test_an_unknown_filter_value_lists_nothing_and_can_be_removed(client: TestClient) -> None:
    text = text_of(client.get("/sessions?workspace=nowhere").text)
    assert "No session matches these filters" in text
    assert "Clear all" in text


def test_every_order_lists_every_session(client: TestClient) -> None:
    for key in ("updated", "created", "title", "workspace", "messages", "prompts", "tokens", "lines"):
        assert client.get(f"/sessions?sort={key}").text.count('class="row-link"') == 46


def test_sessions_are_grouped_by_day_and_month(demo_history: OpenHistory) -> None:
    with demo_history() as history:
        groups = group_by_date(history.all_sessions(), today=date(2026, 11, 11))
    labels = [label for label, _ in groups]
    assert labels[:3] == ["Yesterday", "Monday, 9 November", "Friday, 6 November"]
    assert "October 2026" in labels
    assert sum(len(group) for _, group in groups) == 46


def test_a_session_shows_every_visible_message(client: TestClient, demo_history: OpenHistory) -> None:
    html = client.get(f"/sessions/{CLOCKS}").text
    with demo_history() as history:
        summary = history.find(CLOCKS)
        count = sum(1 for _ in history.transcript.read(summary, with_agents=False))
    assert len(set(re.findall(r'id="m(\d+)"', html))) == count
    text = text_of(html)
    assert "417 requests failed" in text
    assert "claude --resume a4a9482e" in text
    assert "2 prompts" not in text
    assert '<pre class="diff">' in html


def test_a_session_is_found_by_prefix_and_index(client: TestClient) -> None:
    for ref in ("a4a9482e", "claude-code:a4a9"):
        response = client.get(f"/sessions/{ref}?at=3", follow_redirects=False)
        assert response.headers["location"] == f"/sessions/{CLOCKS}?at=3"
    assert client.get("/sessions/1", follow_redirects=False).status_code == 303


@pytest.mark.parametrize("ref", ["missing", "claude-code:nothing", "~!!", "~", "%00", "99999", "a+b+c"])
def test_an_unknown_session_is_not_found(client: TestClient, ref: str) -> None:
    response = client.get(f"/sessions/{ref}")
    assert response.status_code == 404
    assert "Session not found" in response.text


def test_subagents_are_shown_in_place_and_on_their_own_page(client: TestClient) -> None:
    html = client.get("/sessions/f841ceec").text
    assert html.count('<details class="agent">') == 2
    assert "keeps an arbitrary row" in html
    (first, *_) = re.findall(r'class="agent-link"><a href="([^"]+)"', html)
    page = client.get(first)
    assert page.status_code == 200
    assert "Subagent of" in page.text
    assert "Review before the handover" in page.text


def test_a_message_of_a_subagent_has_a_link_to_itself(client: TestClient) -> None:
    html = client.get("/sessions/f841ceec").text
    nested = html[html.index('<details class="agent">') :]
    url = re.search(r'<a href="([^"]+)" title="Link to this message"', nested)
    assert url is not None
    assert re.search(r'id="m0"', client.get(url[1]).text)


@pytest.mark.parametrize("position", [0, 7, 13])
def test_a_link_to_a_message_shows_it(client: TestClient, position: int) -> None:
    assert f'id="m{position}"' in client.get(f"/sessions/{CLOCKS}?at={position}").text


def test_a_position_after_the_end_shows_an_empty_window(client: TestClient) -> None:
    response = client.get(f"/sessions/{CLOCKS}?from=5000")
    assert response.status_code == 200
    assert "Earlier messages" in response.text


@pytest.mark.parametrize("query", ["at=-1", "at=x", "from=1e9", "at=99999999999999999999"])
def test_an_invalid_position_is_explained(client: TestClient, query: str) -> None:
    assert client.get(f"/sessions/{CLOCKS}?{query}").status_code == 400


def test_find_in_a_session_counts_matches_and_steps_through_them(client: TestClient) -> None:
    html = client.get(f"/sessions/{CLOCKS}?find=utc").text
    found = re.search(r"Match 1 of (\d+)", html)
    assert found is not None
    next_url = re.search(r'rel="next" class="button" href="([^"]+)"', html)
    assert next_url is not None
    assert f"Match 2 of {found[1]}" in client.get(next_url[1].replace("&amp;", "&")).text
    assert "No match" in client.get(f"/sessions/{CLOCKS}?find=xyzzyplugh").text


def test_the_record_of_a_message_and_its_origin_are_shown(client: TestClient) -> None:
    text = text_of(client.get(f"/sessions/{CLOCKS}/messages/0").text)
    assert "line" in text
    assert ".jsonl" in text
    assert "On 25 October from 00:00" in text


def test_the_record_of_a_call_includes_its_result(client: TestClient) -> None:
    html = client.get(f"/sessions/{CLOCKS}/messages/1").text
    assert "<h2>Record</h2>" in html
    assert "<h2>Result</h2>" in html


def test_a_record_that_does_not_exist_is_explained(client: TestClient) -> None:
    assert client.get(f"/sessions/{CLOCKS}/messages/999").status_code == 400


@pytest.mark.parametrize("format_", ["md", "html", "json", "jsonl", "txt"])
def test_an_export_is_a_file_to_download(client: TestClient, demo_history: OpenHistory, format_: str) -> None:
    response = client.get(f"/sessions/{CLOCKS}/export.{format_}")
    with demo_history() as history:
        expected = "".join(history.export_session(CLOCKS, format_))  # type: ignore[arg-type]
    assert response.text == expected
    assert response.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in response.headers["content-security-policy"]


def test_the_prompts_of_a_session_are_listed(client: TestClient) -> None:
    html = client.get(f"/sessions/{CLOCKS}/prompts").text
    assert "2 prompts" in text_of(html)
    assert "Then store UTC." in html


def test_search_marks_the_words_and_links_to_the_message(client: TestClient) -> None:
    html = client.get("/search?q=remind+me+clocks").text
    assert "<mark>clocks</mark>" in html
    assert re.search(r'href="/sessions/claude-code:ddda5cbb-[^"]+\?at=13#m13"', html)
    assert "1 session" in text_of(html)


def test_search_while_typing_completes_the_last_word(client: TestClient) -> None:
    assert "Nothing found" in client.get("/search?q=depar").text
    assert "Nothing found" not in client.get("/search?q=depar&typing=1").text


@pytest.mark.parametrize("mode", ["exact", "regex"])
def test_search_finds_exact_text_and_patterns(client: TestClient, mode: str) -> None:
    assert "<mark>" in client.get("/search", params={"q": "board_at", "mode": mode}).text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=...&mode=words", "The query contains no words and is searched as exact text."),
        ("q=(&mode=regex", "regular expression"),
        ("q=role:king+clocks", "is not a filter"),
        ("q=" + "x" * 1000, "Nothing found"),
        ("q=%00%1b[31m", ""),
    ],
)
def test_odd_queries_are_answered(client: TestClient, query: str, expected: str) -> None:
    response = client.get(f"/search?{query}")
    assert response.status_code == 200
    assert expected in text_of(response.text)


def test_punctuation_is_found_as_exact_text(client: TestClient) -> None:
    words = client.get("/search", params={"q": "+=", "mode": "words"}).text
    exact = client.get("/search", params={"q": "+=", "mode": "exact"}).text
    found = re.findall(r'row-link" href="([^"]+)', words)
    assert found == re.findall(r'row-link" href="([^"]+)', exact)
    assert found
    assert 'value="words" checked' in words
    assert 'value="exact" checked' in exact


def test_the_number_of_all_matches_of_a_pattern_is_exact(client: TestClient) -> None:
    text = text_of(client.get("/search?q=clock&mode=exact").text)
    assert re.search(r"(?<!At least )\b10 sessions", text)
    assert re.search(r"At least \d+ sessions", text_of(client.get("/search?q=e&mode=exact").text))


def test_a_match_in_a_title_is_shown_once(client: TestClient) -> None:
    html = client.get("/search", params={"q": '"Tests for the clock change"'}).text
    (match,) = re.findall(r'<li class="row match">(.*?)</li>', html, re.DOTALL)
    assert text_of(match).count("Tests for the clock change") == 1
    assert "<mark>" in match
    assert "title" in text_of(match).split()


@pytest.mark.parametrize(
    ("mode", "title"),
    [("words", "Query syntax"), ("exact", "Exact text"), ("regex", "Regular expressions")],
)
def test_the_help_of_a_search_is_that_of_its_kind(client: TestClient, mode: str, title: str) -> None:
    for query in ("", "clock"):
        html = client.get("/search", params={"q": query, "mode": mode}).text
        help_ = html.partition('<aside class="syntax"')[2].partition("</aside>")[0]
        assert f"<h2>{title}</h2>" in help_
        assert ("since:2026-10" in help_) == (mode == "words")


def test_a_session_without_prices_has_no_cost(tmp_path: Path) -> None:
    Transcript(seed=1, cwd="/home/zoe/ferry").user("When?").assistant("Now.").write(tmp_path / "claude")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text('prices = "missing.toml"\n')

    def open_history() -> History:
        return History(home=tmp_path / "home", roots=[NamedRoot("claude-code", tmp_path / "claude")])

    with open_history() as history:
        history.sync()
    with TestClient(create_app(open_history, TOKEN, auto_sync=False), base_url=ADDRESS) as client:
        page = client.get("/sessions/1")
    assert page.status_code == 200
    assert "Cost" not in text_of(page.text)


def test_pages_of_results_have_stable_addresses(client: TestClient) -> None:
    first, second = client.get("/search?q=the").text, client.get("/search?q=the&page=2").text
    assert 'href="/search?q=the&amp;page=2"' in first
    assert re.findall(r'row-link" href="([^"]+)', first) != re.findall(r'row-link" href="([^"]+)', second)


def test_an_unknown_page_is_not_found(client: TestClient) -> None:
    response = client.get("/nothing")
    assert response.status_code == 404
    assert "Page not found" in response.text


def test_every_link_of_the_main_pages_leads_somewhere(client: TestClient) -> None:
    found: set[str] = set()
    for path in ("/", "/sessions", "/search?q=clocks", f"/sessions/{CLOCKS}"):
        found |= set(re.findall(r'(?:href|src|data-src)="(/[^"#]*)', client.get(path).text))
    for url in sorted(found):
        assert client.get(url.replace("&amp;", "&")).status_code == 200, url


def test_an_image_in_a_message_is_shown(client: TestClient) -> None:
    html = client.get("/sessions/5504d379").text
    (url,) = re.findall(r'<img src="([^"]+)"', html)
    image = client.get(url)
    assert image.headers["content-type"] == "image/png"
    assert image.content.startswith(b"\x89PNG")
    assert image.headers["content-security-policy"] == "sandbox"
    assert client.get(url.removesuffix("0") + "1").status_code == 404


def test_a_page_after_the_last_one_leads_back_to_the_last(client: TestClient) -> None:
    html = client.get("/sessions?page=999").text
    text = text_of(html)
    assert "No sessions on this page" in text
    assert " to " not in text.partition("No sessions on this page")[2].partition("Press")[0]
    (url,) = re.findall(r'rel="prev" href="([^"]+)"', html)
    assert "No sessions on this page" not in client.get(url).text
