"""Requests from other sites and without the token are refused. Pages allow nothing that they do not need."""

import pytest
from starlette.testclient import TestClient

from backscroll.web.app import create_app
from backscroll.web.server import _is_own_name
from tests.web.conftest import ADDRESS, CLOCKS, PORT, TOKEN, OpenHistory

PATHS = [
    "/",
    "/sessions",
    "/health",
    "/search?q=clocks",
    f"/sessions/{CLOCKS}",
    "/missing",
    "/launch?token=wrong",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_response_has_the_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", ""])
def test_a_request_with_another_host_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"])
def test_loopback_names_are_accepted(client: TestClient, name: str) -> None:
    assert client.get("/", headers={"Host": f"{name}:{PORT}"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:7433"]
)
def test_a_request_with_another_origin_is_refused(client: TestClient, origin: str) -> None:
    assert client.get("/", headers={"Origin": origin}).status_code == 403


def test_reading_needs_no_token_on_the_loopback_address(client: TestClient) -> None:
    assert client.get("/sessions").status_code == 200


def test_writing_without_the_token_is_refused(client: TestClient) -> None:
    response = client.post(f"/sessions/{CLOCKS}", data={"action": "star"}, headers={"Origin": ADDRESS})
    assert response.status_code == 401
    assert "backscroll serve" in response.text


def test_writing_with_the_cookie_of_another_launch_is_refused(client: TestClient) -> None:
    headers = {"Origin": ADDRESS, "Cookie": f"backscroll-{PORT}={'u' * 43}"}
    assert client.post(f"/sessions/{CLOCKS}", data={"action": "star"}, headers=headers).status_code == 401


def test_writing_with_the_cookie_requires_the_origin_of_the_server(writer: TestClient) -> None:
    del writer.headers["origin"]
    assert writer.post(f"/sessions/{CLOCKS}", data={"action": "star"}).status_code == 403
    headers = {"Origin": "http://localhost:7433"}  # the same server by another name is another site
    assert writer.post(f"/sessions/{CLOCKS}", data={"action": "star"}, headers=headers).status_code == 403


def test_writing_with_a_bearer_token_succeeds(client: TestClient) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for action in ("star", "unstar"):
        response = client.post(
            f"/sessions/{CLOCKS}", data={"action": action}, headers=headers, follow_redirects=False
        )
        assert response.status_code == 303


def test_the_launch_address_sets_a_strict_cookie_and_hides_the_token(demo_history: OpenHistory) -> None:
    with TestClient(create_app(demo_history, TOKEN, auto_sync=False), base_url=ADDRESS) as client:
        response = client.get(f"/launch?token={TOKEN}", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"].lower()
    assert cookie.startswith(f"backscroll-{PORT}={TOKEN}")
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


@pytest.mark.parametrize("token", ["", "wrong", f"{TOKEN}x", "\u00e9"])
def test_a_wrong_launch_token_sets_no_cookie(client: TestClient, token: str) -> None:
    response = client.get("/launch", params={"token": token})
    assert response.status_code == 403
    assert "set-cookie" not in response.headers


def test_with_another_host_reading_requires_the_token_too(demo_history: OpenHistory) -> None:
    app = create_app(
        demo_history,
        TOKEN,
        is_own_host=lambda name: _is_own_name("0.0.0.0", name),
        is_reading_open=False,
        auto_sync=False,
    )
    with TestClient(app, base_url="http://192.168.1.5:7433") as client:
        for path in ("/", "/sessions", f"/sessions/{CLOCKS}", "/search?q=x", "/static/x/app.css"):
            assert client.get(path).status_code == 401
        assert client.get("/", headers={"Host": f"evil.example:{PORT}"}).status_code == 421
        assert client.get(f"/launch?token={TOKEN}").status_code == 200
        assert client.get("/sessions").status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_need_the_token(client: TestClient, method: str) -> None:
    assert client.request(method, f"/sessions/{CLOCKS}").status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "/static/x/../../app.py",
        "/static/x/..%2f..%2fapp.py",
        "/static/x/%2e%2e%2f%2e%2e%2ftemplates%2fbase.html",
        "/static/x/app.py",
        "/static/x//etc/passwd",
        "/sessions/..%2f..%2farchive.db",
        f"/sessions/{CLOCKS}/export.db",
    ],
)
def test_no_path_leads_out_of_the_static_files(client: TestClient, path: str) -> None:
    response = client.get(path)
    assert response.status_code in (400, 404)
    assert "import" not in response.text


def test_a_form_that_is_too_large_is_refused(writer: TestClient) -> None:
    data = {"action": "add-note", "text": "x" * 100_000}
    response = writer.post(f"/sessions/{CLOCKS}", data=data)
    assert response.status_code == 400
    assert "too long" in response.text


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", "http://localhost", 200),
        ("localhost:80", "http://localhost", 200),
        ("127.0.0.1", None, 200),
        ("[::1]", "http://[::1]", 200),
        ("localhost:81", None, 421),
        ("evil.example", None, 421),
        ("localhost", "http://evil.example", 403),
        ("localhost", "https://localhost", 403),
        ("localhost", "http://localhost:81", 403),
    ],
)
def test_the_port_80_can_be_omitted(
    demo_history: OpenHistory, host: str, origin: str | None, status: int
) -> None:
    app = create_app(demo_history, TOKEN, auto_sync=False)
    with TestClient(app, base_url="http://localhost:80") as client:
        headers = {"Host": host} | ({"Origin": origin} if origin is not None else {})
        assert client.get("/sessions", headers=headers).status_code == status


def test_the_api_requires_the_token_of_every_method_if_reading_does(demo_history: OpenHistory) -> None:
    app = create_app(demo_history, TOKEN, auto_sync=False, is_reading_open=False)
    with TestClient(app, base_url=ADDRESS) as client:
        for method in ("GET", "POST"):
            assert client.request(method, "/api/v1/sessions").status_code == 401
