"""The server over HTTP: the same answers, and no one else gets any."""

import os
import signal
import stat
import subprocess
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

from tests.mcp_server.serving import COMMAND, HELLO, Asking
from tests.mcp_server.test_tools import CALLS

ACCEPT = {"Accept": "application/json, text/event-stream"}


class Served:
    def __init__(self, address: str, token: str, token_file: Path) -> None:
        self.address = address
        self.token = token
        self.token_file = token_file

    def hello(self, **headers: str) -> int:
        """What the first request is answered with, given these headers."""
        return httpx2.post(self.address, json=HELLO, headers=ACCEPT | headers, timeout=20).status_code


@pytest.fixture(scope="module")
def served(environ: dict[str, str]) -> Iterator[Served]:
    process = subprocess.Popen(
        [COMMAND, "mcp", "--http"],
        env=os.environ | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    token_file = Path(environ["BACKSCROLL_HOME"]) / "mcp-token"
    yield Served(address, token_file.read_text().strip(), token_file)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=20)
    assert process.returncode == 0
    assert str(token_file) in told
    assert "Traceback" not in told


@asynccontextmanager
async def connected(served: Served) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {served.token}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(streamable_http_client(served.address, http_client=http)) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def asked(served: Served) -> Iterator[Asking]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(connected(served)) as client:
        yield Asking(portal, client)


def test_it_listens_on_this_machine_only(served: Served) -> None:
    assert served.address.startswith("http://127.0.0.1:")
    assert served.address.endswith("/mcp")


def test_only_its_owner_may_read_the_token(served: Served) -> None:
    assert stat.S_IMODE(served.token_file.stat().st_mode) == 0o600
    assert len(served.token) >= 32


@pytest.mark.parametrize(("tool", "arguments"), [one for one in CALLS if one[1]])
def test_a_tool_answers_as_it_does_over_standard_streams(
    asking: Asking, asked: Asking, tool: str, arguments: dict[str, Any]
) -> None:
    here, there = asking.document(tool, **arguments), asked.document(tool, **arguments)
    for one in (here, there):
        one.pop("took_ms", None)
    assert here == there


def test_resources_and_prompts_are_offered_too(asked: Asking) -> None:
    assert asked.run(lambda client: client.list_resources()).resources
    assert asked.run(lambda client: client.list_prompts()).prompts
    (content,) = asked.run(lambda client: client.read_resource("backscroll://sessions")).contents
    assert "A page about the year" in getattr(content, "text", "")


def test_with_the_token_it_answers(served: Served) -> None:
    assert served.hello(Authorization=f"Bearer {served.token}") == 200


@pytest.mark.parametrize("given", [None, "", "Bearer", "Bearer wrong", "Basic {token}", "{token}"])
def test_without_the_token_it_does_not(served: Served, given: str | None) -> None:
    headers = {} if given is None else {"Authorization": given.format(token=served.token)}
    assert served.hello(**headers) == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "localhost"])
def test_another_host_is_refused(served: Served, host: str) -> None:
    assert served.hello(Authorization=f"Bearer {served.token}", Host=host) == 421


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:1", "https://127.0.0.1"]
)
def test_another_origin_is_refused(served: Served, origin: str) -> None:
    assert served.hello(Authorization=f"Bearer {served.token}", Origin=origin) == 403


def test_a_token_in_the_address_is_none(served: Served) -> None:
    there = f"{served.address}?token={served.token}&access_token={served.token}"
    assert httpx2.post(there, json=HELLO, headers=ACCEPT, timeout=20).status_code == 401


def test_a_token_of_any_bytes_is_wrong_and_nothing_more(served: Served) -> None:
    headers = {**ACCEPT, "Authorization": b"Bearer \xff\xfe\xe9"}
    assert httpx2.post(served.address, json=HELLO, headers=headers, timeout=20).status_code == 401


def test_a_request_that_is_far_too_big_is_refused(served: Served) -> None:
    headers = ACCEPT | {"Authorization": f"Bearer {served.token}"}
    big = httpx2.post(served.address, json={**HELLO, "junk": "x" * (8 << 20)}, headers=headers, timeout=20)
    assert big.status_code == 413
    assert served.hello(Authorization=f"Bearer {served.token}") == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_without_the_token_no_method_gets_through(served: Served, method: str) -> None:
    assert httpx2.request(method, served.address, headers=ACCEPT, timeout=20).status_code == 401


def test_several_clients_are_answered_at_once(served: Served) -> None:
    async def ask(number: int, found: list[int]) -> None:
        async with connected(served) as client:
            page = await client.call_tool("list_sessions", {"limit": 1, "offset": number})
            found.append(page.structured_content["pagination"]["offset"])

    async def main() -> list[int]:
        found: list[int] = []
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(ask, number, found)
        return sorted(found)

    assert anyio.run(main) == [0, 1, 2, 3, 4]


def test_its_own_origin_is_answered(served: Served) -> None:
    origin = served.address.removesuffix("/mcp")
    assert served.hello(Authorization=f"Bearer {served.token}", Origin=origin) == 200


def test_a_port_that_is_taken_is_said(served: Served, environ: dict[str, str]) -> None:
    port = served.address.removesuffix("/mcp").rpartition(":")[2]
    done = subprocess.run(
        [COMMAND, "mcp", "--http", "--port", port],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 1
    assert f"Port {port} is not available" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_without_http_is_a_wrong_call(environ: dict[str, str]) -> None:
    done = subprocess.run(
        [COMMAND, "mcp", "--port", "5000"],
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, "--port requires --http" in done.stderr) == (2, True)
