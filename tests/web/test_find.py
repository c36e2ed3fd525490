"""Find in a session: words, exact text and regular expressions."""

import re

from pytest import MonkeyPatch
from starlette.testclient import TestClient

from tests.web.conftest import CLOCKS, text_of


def _match_url(html: str) -> tuple[str, int]:
    """Return the address and the number of the matches of the first session in search results."""
    found = re.search(r'<a href="([^"]+find=[^"]+)">(\d+) matches</a>', html)
    assert found is not None
    return found[1].replace("&amp;", "&"), int(found[2])


def test_the_matches_of_an_exact_search_lead_to_the_same_number(client: TestClient) -> None:
    url, count = _match_url(client.get("/search", params={"q": "utc", "mode": "exact"}).text)
    html = client.get(url).text
    assert f"Match 1 of {count}" in text_of(html)
    assert '<option value="exact" selected>' in html
    next_url = re.search(r'rel="next" class="button" href="([^"]+)"', html)
    assert next_url is not None
    assert "mode=exact" in next_url[1]


def test_the_matches_of_a_regular_expression_keep_its_filter(client: TestClient) -> None:
    query = {"q": r"time\w*", "mode": "regex", "filter": "role:assistant"}
    url, count = _match_url(client.get("/search", params=query).text)
    assert f"Match 1 of {count}" in text_of(client.get(url).text)
    assert f"Match 1 of {count}" not in text_of(client.get(url.replace("filter=", "x=")).text)


def test_punctuation_is_found_as_exact_text(client: TestClient) -> None:
    html = client.get(f"/sessions/{CLOCKS}", params={"find": "()"}).text
    assert 'data-mode="exact"' in html
    assert re.search(r"Match 1 of \d+", html)
    assert "No match" in client.get(f"/sessions/{CLOCKS}", params={"find": "%%%"}).text


def test_an_invalid_expression_or_kind_is_explained(client: TestClient) -> None:
    page = client.get(f"/sessions/{CLOCKS}", params={"find": "(", "mode": "regex"})
    assert page.status_code == 200
    assert "is not a valid regular expression" in text_of(page.text)
    assert client.get(f"/sessions/{CLOCKS}?find=x&mode=y").status_code == 400


def test_a_query_that_is_too_long_is_explained(client: TestClient) -> None:
    text = "tide " * 201
    for path, query in (("/search", {"q": text}), (f"/sessions/{CLOCKS}", {"find": text})):
        page = client.get(path, params=query)
        assert page.status_code == 200
        assert "The query has more than 1,000 characters" in text_of(page.text)
    assert client.get("/search/facets", params={"q": text}).status_code == 400


def test_a_number_of_matches_that_is_not_complete_says_so(
    client: TestClient, monkeypatch: MonkeyPatch
) -> None:
    monkeypatch.setattr("backscroll.search.search.MAX_MATCHES", 2)
    assert "Match 1 of at least 2" in text_of(client.get(f"/sessions/{CLOCKS}?find=utc").text)
