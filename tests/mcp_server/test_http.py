"""The HTTP transport returns the same results, and requires the token."""

import os
import signal
import stat
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from tests.mcp_server.server_client import COMMAND, INITIALIZE_REQUEST, McpClient
from tests.mcp_server.test_tools import CALLS

ACCEPT = {"Accept": "application/json, text/event-stream"}


class HttpServer:
    """Address and token of a running server."""

    def __init__(self, address: str, token: str, token_file: Path) -> None:
        self.address = address
        self.token = token
        self.token_file = token_file

    def initialize(self, **headers: str) -> int:
        """Send the first request with these headers. Return the status code."""
        return httpx2.post(
            self.address, json=INITIALIZE_REQUEST, headers=ACCEPT | headers, timeout=20
        ).status_code


@pytest.fixture(scope="module")
def http_server(environ: dict[str, str]) -> Iterator[HttpServer]:
    process = subprocess.Popen(
        [COMMAND, "mcp", "--http", "--structured"],
        env=os.environ | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    token_file = Path(environ["BACKSCROLL_HOME"]) / "mcp-token"
    yield HttpServer(address, token_file.read_text().strip(), token_file)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 0
    assert str(token_file) in stderr
    assert "Traceback" not in stderr


@asynccontextmanager
async def connect(http_server: HttpServer) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {http_server.token}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(streamable_http_client(http_server.address, http_client=http)) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def http_client(http_server: HttpServer) -> Iterator[McpClient]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(connect(http_server)) as client:
        yield McpClient(portal, client)


def test_the_server_listens_on_the_loopback_interface(http_server: HttpServer) -> None:
    assert http_server.address.startswith("http://127.0.0.1:")
    assert http_server.address.endswith("/mcp")


def test_responses_on_a_kept_alive_connection_are_not_delayed(http_server: HttpServer) -> None:
    seconds = []
    headers = ACCEPT | {"Authorization": f"Bearer {http_server.token}"}
    with httpx2.Client(headers=headers, timeout=20) as client:
        for _ in range(20):
            start = time.perf_counter()
            assert client.post(http_server.address, json=INITIALIZE_REQUEST).status_code == 200
            seconds.append(time.perf_counter() - start)
    # Without TCP_NODELAY, nearly all take 40 ms or more. Not the median: another process may use the cores.
    assert sorted(seconds)[5] < 0.03


def test_only_the_owner_can_read_the_token_file(http_server: HttpServer) -> None:
    assert stat.S_IMODE(http_server.token_file.stat().st_mode) == 0o600
    assert len(http_server.token) >= 32


@pytest.mark.parametrize(("tool", "arguments"), [call for call in CALLS if call[1]])
def test_a_tool_returns_the_same_document_over_http_and_stdio(
    structured_client: McpClient, http_client: McpClient, tool: str, arguments: dict[str, Any]
) -> None:
    over_stdio, over_http = (
        structured_client.document(tool, **arguments),
        http_client.document(tool, **arguments),
    )
    for document in (over_stdio, over_http):
        document.pop("took_ms", None)
    assert over_stdio == over_http


def test_resources_and_prompts_are_available_over_http(http_client: McpClient) -> None:
    assert http_client.run(lambda client: client.list_resources()).resources
    assert http_client.run(lambda client: client.list_prompts()).prompts
    (content,) = http_client.run(lambda client: client.read_resource("backscroll://sessions")).contents
    assert "A page about the year" in getattr(content, "text", "")


def test_a_request_with_the_token_succeeds(http_server: HttpServer) -> None:
    assert http_server.initialize(Authorization=f"Bearer {http_server.token}") == 200


@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer wrong", "Basic {token}", "{token}"])
def test_a_request_without_the_token_is_refused(http_server: HttpServer, authorization: str | None) -> None:
    headers = (
        {} if authorization is None else {"Authorization": authorization.format(token=http_server.token)}
    )
    assert http_server.initialize(**headers) == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "localhost"])
def test_a_request_with_another_host_is_refused(http_server: HttpServer, host: str) -> None:
    assert http_server.initialize(Authorization=f"Bearer {http_server.token}", Host=host) == 421


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:1", "https://127.0.0.1"]
)
def test_a_request_with_another_origin_is_refused(http_server: HttpServer, origin: str) -> None:
    assert http_server.initialize(Authorization=f"Bearer {http_server.token}", Origin=origin) == 403


def test_a_token_in_the_query_string_is_not_accepted(http_server: HttpServer) -> None:
    url = f"{http_server.address}?token={http_server.token}&access_token={http_server.token}"
    assert httpx2.post(url, json=INITIALIZE_REQUEST, headers=ACCEPT, timeout=20).status_code == 401


def test_a_token_that_is_not_ascii_is_refused(http_server: HttpServer) -> None:
    headers = {**ACCEPT, "Authorization": b"Bearer \xff\xfe\xe9"}
    assert (
        httpx2.post(http_server.address, json=INITIALIZE_REQUEST, headers=headers, timeout=20).status_code
        == 401
    )


def test_a_request_that_is_too_large_is_refused(http_server: HttpServer) -> None:
    headers = ACCEPT | {"Authorization": f"Bearer {http_server.token}"}
    request = {**INITIALIZE_REQUEST, "junk": "x" * (8 << 20)}
    assert httpx2.post(http_server.address, json=request, headers=headers, timeout=20).status_code == 413
    assert http_server.initialize(Authorization=f"Bearer {http_server.token}") == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_every_method_requires_the_token(http_server: HttpServer, method: str) -> None:
    assert httpx2.request(method, http_server.address, headers=ACCEPT, timeout=20).status_code == 401


def test_several_clients_can_connect_at_once(http_server: HttpServer) -> None:
    async def list_at(offset: int, found: list[int]) -> None:
        async with connect(http_server) as client:
            page = await client.call_tool("list_sessions", {"limit": 1, "offset": offset})
            found.append(page.structured_content["pagination"]["offset"])

    async def main() -> list[int]:
        found: list[int] = []
        async with anyio.create_task_group() as group:
            for offset in range(5):
                group.start_soon(list_at, offset, found)
        return sorted(found)

    assert anyio.run(main) == [0, 1, 2, 3, 4]


def test_a_request_with_the_origin_of_the_server_succeeds(http_server: HttpServer) -> None:
    origin = http_server.address.removesuffix("/mcp")
    assert http_server.initialize(Authorization=f"Bearer {http_server.token}", Origin=origin) == 200


def test_a_port_that_is_in_use_is_an_error(http_server: HttpServer, environ: dict[str, str]) -> None:
    port = http_server.address.removesuffix("/mcp").rpartition(":")[2]
    result = subprocess.run(
        [COMMAND, "mcp", "--http", "--port", port],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert result.returncode == 1
    assert f"Port {port} is not available" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_port_without_http_is_a_usage_error(environ: dict[str, str]) -> None:
    result = subprocess.run(
        [COMMAND, "mcp", "--port", "5000"],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (result.returncode, "--port requires --http" in result.stderr) == (2, True)
