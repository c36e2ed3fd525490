"""The JSON API returns the documents of the command line, as its description says."""

from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from backscroll.documents import message_document, search_document, to_document
from backscroll.history.history import History
from backscroll.model.session import Filter
from backscroll.render.statistics import report_document
from backscroll.web.api import API_PATH, OPERATIONS, openapi_document
from backscroll.web.app import create_app
from tests.web.conftest import ADDRESS, CLOCKS, TOKEN, OpenHistory

EXAMPLES = {
    "listSessions": "/sessions?limit=100",
    "getSession": f"/sessions/{CLOCKS}",
    "listMessages": f"/sessions/{CLOCKS}/messages",
    "search": "/search?q=two+clocks",
    "getSearchFacets": "/search/facets?q=two+clocks",
    "getFacets": "/facets",
    "listWorkspaces": "/workspaces",
    "getStatistics": "/statistics?by=month",
    "getStatus": "/status",
}


def get(client: TestClient, path: str) -> Any:
    response = client.get(API_PATH + path)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_response_matches_its_schema(client: TestClient, operation: Any) -> None:
    document = get(client, EXAMPLES[operation.name])
    assert document["is_complete"] is True
    description = client.get(f"{API_PATH}/openapi.json").json()
    success = description["paths"][operation.path]["get"]["responses"]["200"]
    schema = success["content"]["application/json"]["schema"]
    validator = jsonschema.Draft202012Validator({**schema, "components": description["components"]})
    validator.validate(document)


def test_messages_of_every_session_match_their_schema(client: TestClient, demo_history: OpenHistory) -> None:
    components = openapi_document()["components"]
    validator = jsonschema.Draft202012Validator(
        {"$ref": "#/components/schemas/MessagePage", "components": components}
    )
    with demo_history() as history:
        refs = [summary.ref for summary in history.all_sessions(Filter(with_subagents=True))]
    for ref in refs[::6]:
        validator.validate(get(client, f"/sessions/{ref}/messages?limit=1000"))


def test_every_path_and_parameter_is_documented() -> None:
    reference = Path(__file__).parents[2] / "docs" / "reference"
    page = "".join((reference / name).read_text(encoding="utf-8") for name in ("web-api.md", "documents.md"))
    for operation in OPERATIONS:
        assert f"`{API_PATH}{operation.path}`" in page
        for parameter in operation.parameters:
            assert f"`{parameter.name}`" in page, parameter.name


def test_sessions_are_those_of_the_library(client: TestClient, demo_history: OpenHistory) -> None:
    with demo_history() as history:
        filter_ = Filter(source="cursor", has_edits=True)
        expected = to_document(history.list_sessions(filter_, limit=3, offset=1, sort="title"))
    found = get(client, "/sessions?source=cursor&has_edits=true&limit=3&offset=1&sort=title")
    found.pop("is_complete")
    assert found == _as_json(expected)


def test_messages_are_paged(client: TestClient, demo_history: OpenHistory) -> None:
    with demo_history() as history:
        messages = list(history.transcript.messages(history.find(CLOCKS)))
    expected = [message_document(message, position) for position, message in enumerate(messages)]
    found, offset = [], 0
    while True:
        page = get(client, f"/sessions/{CLOCKS}/messages?limit=4&offset={offset}")
        found += page["data"]
        offset += len(page["data"])
        assert page["pagination"]["total"] == len(messages)
        if not page["pagination"]["has_more"]:
            break
    assert found == _as_json(expected)
    assert get(client, f"/sessions/{CLOCKS}/messages?offset=500")["data"] == []


def test_search_and_statistics_are_those_of_the_library(
    client: TestClient, demo_history: OpenHistory
) -> None:
    with demo_history() as history:
        matches = search_document(history.search_sessions("clocks", by="message", limit=5))
        report = report_document(history.statistics.report(by="source"))
    found = get(client, "/search?q=clocks&by=message&limit=5")
    assert found["data"] == _as_json(matches["data"])
    assert get(client, "/statistics?by=source")["data"] == _as_json(report["data"])


def _as_json(document: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/sessions?limit=0", 400),
        ("/sessions?limit=1001", 400),
        ("/sessions?limit=x", 400),
        ("/sessions?sort=weight", 400),
        ("/sessions?since=soon", 400),
        ("/sessions?gone=maybe", 400),
        ("/sessions?unknown=1", 400),
        ("/search", 400),
        ("/search?q=", 400),
        ("/search?q=(&mode=regex", 400),
        ("/statistics?by=century", 400),
        ("/sessions/missing", 404),
        ("/sessions/~%2f", 404),
        ("/sessions/missing/messages", 404),
        ("/nothing", 404),
    ],
)
def test_an_error_is_a_document(client: TestClient, path: str, status: int) -> None:
    response = client.get(API_PATH + path)
    assert response.status_code == status
    error = response.json()["error"]
    assert error["status"] == status
    assert error["message"]


def test_the_api_is_read_only(client: TestClient) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for method in ("POST", "PUT", "DELETE"):
        assert client.request(method, f"{API_PATH}/sessions", headers=headers).status_code == 405


@given(data=st.data())
def test_no_request_causes_an_internal_error(client: TestClient, data: st.DataObject) -> None:
    operation = data.draw(st.sampled_from(OPERATIONS))
    texts = st.text(max_size=30) | st.sampled_from(["1", "true", "7d", "*", "claude-code", "\x00", "\ud7ff"])
    names = [parameter.name for parameter in operation.parameters]
    query = data.draw(st.dictionaries(st.sampled_from(names), texts, max_size=4)) if names else {}
    ref = data.draw(st.sampled_from([CLOCKS, "1", "a", "~x", "é"]))
    response = client.get(API_PATH + operation.path.replace("{ref}", ref), params=query)
    assert response.status_code in (200, 400, 404)
    assert isinstance(response.json(), dict)


@pytest.mark.parametrize("mode", ["words", "exact"])
def test_search_facets_are_those_of_the_library(
    client: TestClient, demo_history: OpenHistory, mode: Any
) -> None:
    with demo_history() as history:
        expected = history.search_facets("clock", pattern=mode, filter_query="role:tool")
        total = history.search_sessions("clock role:tool", by="message", limit=1).total
    assert expected.total
    assert mode == "exact" or expected.total == total
    found = get(client, f"/search/facets?q=clock&mode={mode}&filter=role:tool")
    assert found.pop("is_complete") is True
    assert found == _as_json(msgspec.to_builtins(expected))


def test_a_pattern_can_be_filtered(client: TestClient) -> None:
    everything = get(client, "/search?q=clock&mode=exact&by=message&limit=1000")["data"]
    filtered = get(client, "/search?q=clock&mode=exact&by=message&limit=1000&filter=role:user")["data"]
    assert filtered == [match for match in everything if match["role"] == "user"]
    assert 0 < len(filtered) < len(everything)


@pytest.mark.parametrize("path", ["/search", "/search/facets"])
def test_a_filter_with_words_is_an_error_in_a_search_for_text(client: TestClient, path: str) -> None:
    response = client.get(f"{API_PATH}{path}?q=clock&mode=exact&filter=since:7d+words")
    assert response.status_code == 400
    assert "Use only filters" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/sessions", {"Host": "evil.example:7433"}, 421),
        ("GET", "/sessions", {"Origin": "http://evil.example"}, 403),
        ("POST", "/sessions", {}, 405),
        ("POST", "/nothing", {}, 405),
        ("POST", "/sessions", {"Origin": "http://evil.example"}, 403),
        ("POST", "/sessions", {"Authorization": f"Bearer {TOKEN}"}, 405),
        ("DELETE", f"/sessions/{CLOCKS}", {"Authorization": f"Bearer {TOKEN}"}, 405),
        ("GET", "/nothing", {"Accept": "text/html"}, 404),
        ("GET", "/sessions?limit=5&limit=6", {}, 400),
    ],
)
def test_every_error_is_a_document(
    client: TestClient, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    response = client.request(method, API_PATH + path, headers=headers)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    error = response.json()["error"]
    assert error["status"] == status
    assert error["message"].endswith(".")
    assert ("www-authenticate" in response.headers) == (status == 401)
    assert status != 405 or response.headers["allow"] in ("GET, HEAD", "HEAD, GET")


def test_an_unexpected_error_is_a_document(
    demo_history: OpenHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(demo_history, TOKEN, auto_sync=False)
    with TestClient(app, base_url=ADDRESS, raise_server_exceptions=False) as client:
        monkeypatch.setattr(History, "list_workspaces", lambda self: 1 / 0)
        response = client.get(f"{API_PATH}/workspaces")
    assert response.status_code == 500
    assert response.json() == {"error": {"status": 500, "message": "Internal error (ZeroDivisionError)."}}


def test_pages_keep_their_own_errors(client: TestClient) -> None:
    assert client.get("/nothing").headers["content-type"] == "text/html; charset=utf-8"
    assert client.post("/health").headers["content-type"] == "text/plain; charset=utf-8"


def test_punctuation_is_searched_as_exact_text(client: TestClient) -> None:
    words, exact = (get(client, f"/search?q=%2B%3D&mode={mode}")["data"] for mode in ("words", "exact"))
    assert words == exact
    assert words
    assert get(client, "/search/facets?q=%2B%3D")["total"]


def test_head_has_the_headers_of_get(client: TestClient) -> None:
    head, whole = client.head(f"{API_PATH}/workspaces"), client.get(f"{API_PATH}/workspaces")
    assert head.status_code == 200
    assert not head.content
    assert head.headers["content-length"] == whole.headers["content-length"]
