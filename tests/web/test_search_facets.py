"""Filters beside the search results show how many messages they find, and change the query."""

import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from backscroll.archive.query import sessions
from backscroll.model.search import FilterItem
from backscroll.search import pattern_search
from backscroll.web.pages.search import QueryText
from tests.web.conftest import OpenHistory, text_of

LINK = re.compile(
    r'<li><a href="([^"]+)"( aria-current="true")?[^>]*><span class="choice-label">([^<]*)</span>'
    r' <span class="choice-count">([\d,]+)</span>'
)
BAR = re.compile(
    r'<a href="([^"]+)" tabindex="-1"><rect class="hit"[^>]*><title>([^<]*): ([\d,]+) messages?</title>'
)
QUERIES = [
    "clock",
    "test",
    "clocks role:user",  # only in another form
    "test role:tool source:cursor",
    "is:edit",
    "source:claude-code",
    "test -flaky",
    "test since:2026-10",
    'test workspace:"tideline"',
    "model:opus is:error",
]


def links(html: str) -> list[tuple[str, bool, str, int]]:
    """Return query, whether it is active, label and count of each filter."""
    found = [
        (query_of(url), bool(active), label, int(count.replace(",", "")))
        for url, active, label, count in LINK.findall(html)
    ]
    return found + [
        (query_of(url), False, label, int(count.replace(",", ""))) for url, label, count in BAR.findall(html)
    ]


def query_of(url: str) -> str:
    return parse_qs(urlsplit(unescape(url)).query).get("q", [""])[0]


@pytest.mark.parametrize("query", QUERIES)
def test_a_filter_finds_as_many_messages_as_it_says(
    client: TestClient, demo_history: OpenHistory, query: str
) -> None:
    html = client.get("/search", params={"q": query}).text
    found = links(html)
    assert found
    with demo_history() as history:
        for changed, is_active, label, count in found:
            if is_active:
                continue  # its link removes the filter
            # Several values of a property mean either of them. The count is that of the last one alone.
            alone = re.sub(r"\b(role|source|workspace|model):\S+ (?=.*\b\1:\S+$)", "", changed)
            result = history.search_sessions(alone, by="message", limit=1)
            assert result.total == count, (alone, label)
            assert not result.is_relaxed


@pytest.mark.parametrize(
    ("pattern", "mode", "filter_query"),
    [
        ("clock", "exact", ""),
        ("def ", "exact", "role:tool"),
        ("test", "exact", "source:claude-code is:error"),
        (r"\bw\w+k\b", "regex", "since:2026-10"),
        ("e", "exact", "-is:error model:opus"),  # cannot use the index
    ],
)
def test_a_filter_of_a_pattern_finds_as_many_messages_as_it_says(
    client: TestClient, demo_history: OpenHistory, pattern: str, mode: str, filter_query: str
) -> None:
    page = client.get("/search", params={"q": pattern, "mode": mode, "filter": filter_query}).text
    (url,) = re.findall(r'data-load="([^"]+)"', page)
    html = client.get(unescape(url)).text
    assert len(links(html)) > 3
    with demo_history() as history:

        def count(filter_query: str) -> int | None:
            result = history.search_sessions(
                pattern, by="message", limit=1000, pattern=mode, ignore_case=True, filter_query=filter_query
            )
            assert not result.has_more
            return result.total_at_least

        assert f"{count(filter_query)} messages match the pattern" in text_of(html)
        choices = [(url, bool(active), number) for url, active, _, number in LINK.findall(html)]
        for url, is_active, number in [
            *choices,
            *((url, False, number) for url, _, number in BAR.findall(html)),
        ]:
            values = parse_qs(urlsplit(unescape(url)).query)
            assert (values["q"], values["mode"]) == ([pattern], [mode])
            if is_active:
                continue
            alone = re.sub(r"\b(role|source|workspace|model):\S+ (?=.*\b\1:\S+$)", "", values["filter"][0])
            assert count(alone) == int(number.replace(",", "")), alone


def test_counts_of_a_pattern_stop_at_their_time_limit(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_search, "FACET_TIMEOUT_SECONDS", -1.0)
    text = text_of(client.get("/search/facets?q=clock&mode=exact").text)
    assert "At least 0 messages match the pattern" in text
    assert "Counting stopped at its time limit" in text


def test_filters_of_a_pattern_become_part_of_a_query_for_words(client: TestClient) -> None:
    html = client.get("/search?q=clock&mode=exact&filter=role:user").text
    assert '<input type="hidden" name="filter" value="role:user">' in html
    assert "role user" in text_of(html)
    assert 'value="clock role:user"' in client.get("/search?q=clock&mode=words&filter=role:user").text


def test_an_active_filter_counts_as_if_it_were_the_only_one_of_its_kind(client: TestClient) -> None:
    before = {label: count for _, _, label, count in links(client.get("/search?q=test").text)}
    html = client.get("/search?q=test+source:cursor").text
    after = {label: (count, is_active, query) for query, is_active, label, count in links(html)}
    for source in ("claude-code", "cursor", "cursor-cli"):
        assert after[source][0] == before[source]
    assert after["cursor"][1:] == (True, "test")
    assert after["claude-code"][1:] == (False, "test source:cursor source:claude-code")


def test_the_total_is_that_of_a_search_for_messages(client: TestClient, demo_history: OpenHistory) -> None:
    with demo_history() as history:
        total = history.search_sessions("test", by="message", limit=1).total
    assert f"{total} messages match all words" in text_of(client.get("/search?q=test").text)


def test_active_filters_are_listed_and_can_be_removed(client: TestClient) -> None:
    html = client.get("/search", params={"q": "clock -role:tool since:2026-10 file:index.html"}).text
    urls = re.findall(r'<li><a href="([^"]+)" title="Remove this filter">', html)
    assert [query_of(url) for url in urls] == [
        "clock since:2026-10 file:index.html",
        "clock -role:tool file:index.html",
        "clock -role:tool since:2026-10",
    ]
    assert "not role tool" in text_of(html)


def test_a_workspace_that_shares_its_name_is_named_by_its_path(client: TestClient) -> None:
    found = links(client.get("/search?q=source:cursor").text)
    queries = {label: query for query, _, label, _ in found if label.startswith("saltern (")}
    assert len(queries) == 2
    assert queries["saltern (ssh-remote+gauge-box)"].endswith("workspace:ssh-remote+gauge-box:/srv/saltern")


def test_counts_of_many_results_are_loaded_after_the_page(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    inline = links(client.get("/search?q=test").text)
    monkeypatch.setattr("backscroll.web.pages.search.MAX_INLINE_SESSIONS", 1)
    html = client.get("/search?q=test").text
    assert not links(html)
    (url,) = re.findall(r'data-load="([^"]+)"', html)
    assert links(client.get(unescape(url)).text) == inline


def test_counts_while_typing_are_those_of_the_prefix(client: TestClient, demo_history: OpenHistory) -> None:
    html = client.get("/search?q=clo&typing=1").text
    (url,) = re.findall(r'data-load="([^"]+)"', html)
    text = text_of(client.get(unescape(url)).text)
    with demo_history() as history:
        total = history.search_sessions("clo*", by="message", limit=1).total
    assert f"{total} messages match" in text


def test_a_single_letter_after_a_word_is_ignored_while_it_is_typed(client: TestClient) -> None:
    def found(query: str) -> list[str]:
        return re.findall(r'class="row-link" href="([^"]+)"', client.get(f"/search?q={query}").text)

    assert found("clocks+x&typing=1") == found("clocks")
    assert found("clocks+x") != found("clocks")
    assert found("c&typing=1") == found("c*")


@pytest.mark.parametrize("query", ["since:2026-11", "role:user", "is:edit", "source:cursor"])
def test_a_date_or_role_is_a_filter_while_it_is_typed(client: TestClient, query: str) -> None:
    complete = re.findall(r'class="row-link" href="([^"]+)"', client.get(f"/search?q={query}").text)
    typed = re.findall(r'class="row-link" href="([^"]+)"', client.get(f"/search?q={query}&typing=1").text)
    assert typed == complete
    assert complete


@pytest.mark.parametrize(
    "params",
    [
        {"q": "(", "mode": "regex"},
        {"q": "clock", "mode": "exact", "filter": "no-filter"},
        {"q": "zebra quagga okapi"},
        {"q": "zebraquaggaokapi"},
        {"q": "zebraquaggaokapi", "mode": "exact"},
        {"q": ""},
    ],
)
def test_a_search_without_counts_has_no_filters(client: TestClient, params: dict[str, str]) -> None:
    html = client.get("/search", params=params).text
    assert not links(html)
    assert "data-load" not in html


@pytest.mark.parametrize(
    "path",
    [
        "/search/facets",
        "/search/facets?q=(&mode=regex",
        "/search/facets?q=x&mode=exact&filter=word",
        "/search/facets?mode=x",
    ],
)
def test_an_invalid_request_for_counts_is_explained(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 400


def test_a_value_with_spaces_or_quotation_marks_is_written_as_a_filter() -> None:
    text = QueryText("a", [])
    assert text.with_filter("workspace", "my shop") == 'a workspace:"my shop"'
    assert text.with_filter("workspace", 'the "shop"') == 'a workspace:"the *shop*"'
    assert text.with_filter("workspace", "shop") == "a workspace:shop"


def test_a_time_range_replaces_another_one() -> None:
    items = [FilterItem("since", "7d", 2, 10, False), FilterItem("until", "1d", 13, 21, False)]
    text = QueryText("a since:7d b until:1d", items)
    assert text.with_dates("2026-10", "2026-10") == "a b since:2026-10 until:2026-10"
    assert text.without_dates() == "a b"
    assert text.url("a b") == "/search?q=a+b"


def test_filters_of_hostile_names_stay_text(client: TestClient) -> None:
    html = client.get("/search", params={"q": 'clock workspace:"<img src=x onerror=alert(1)>"'}).text
    assert "<img" not in html
    assert "&lt;img" in html


@pytest.mark.parametrize("query", ["the", "zone", "the -zone", "source:cursor the"])
def test_counts_do_not_depend_on_how_the_sessions_are_read(
    demo_history: OpenHistory, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    with demo_history() as history:
        selected = history.search_facets(query)
    monkeypatch.setattr(sessions, "MAX_SELECTED_PROPERTIES", 0)
    with demo_history() as history:
        assert history.search_facets(query) == selected
    assert selected.total


@pytest.mark.parametrize("operator", ["OR", "AND NOT", "NOT", "OR OR "])
def test_an_operator_at_the_end_of_a_query_does_not_apply_to_an_added_filter(
    client: TestClient, operator: str
) -> None:
    html = client.get("/search", params={"q": f"clocks {operator}"}).text
    links = re.findall(r'href="/search\?q=(clocks[^"]*role%3A[^"]*)"', html)
    assert links
    assert all(link.startswith("clocks+role") for link in links)


def test_a_filter_limits_a_query_that_ends_with_an_operator(demo_history: OpenHistory) -> None:
    with demo_history() as history:
        limited = history.search_facets("clocks OR", filter_query="role:user")
        assert limited.total == history.search_facets("clocks role:user").total
