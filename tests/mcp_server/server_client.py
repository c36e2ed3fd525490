"""A server in a separate process, and a synchronous client of it."""

import os
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult

COMMAND = str(Path(sys.executable).with_name("backscroll"))
# The first request of a client.
INITIALIZE_REQUEST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
T = TypeVar("T")


class McpClient:
    """Synchronous wrapper of an MCP client."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self.client = client

    def run(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """Run an asynchronous request. Return its result."""

        async def run_request() -> T:
            return await request(self.client)

        return self._portal.call(run_request)

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """Call a tool. Return its result, which may be an error."""
        result = self.run(lambda client: client.call_tool(tool, arguments))
        assert isinstance(result, CallToolResult)
        return result

    def document(self, tool: str, **arguments: Any) -> Any:
        """Call a tool of a server with ``--structured``. Return the document of its result."""
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content
        return result.structured_content

    def pages(self, tool: str, *, limit: int, **arguments: Any) -> Iterator[Any]:
        """Call a tool for every page of a list."""
        offset, has_more = 0, True
        while has_more:
            page = self.document(tool, limit=limit, offset=offset, **arguments)
            yield page
            offset += len(page["data"])
            has_more = page["pagination"]["has_more"]

    def positions(self, ref: str, *, count: int) -> list[int]:
        """Read all pages of a session. Return the positions of the messages."""
        found: list[int] = []
        start: int | None = 0
        while start is not None:
            page = self.document("get_session", ref=ref, count=count, position=start)
            found += [message["position"] for message in page["messages"]]
            start = page.get("next_position")
        return found

    def text(self, tool: str, **arguments: Any) -> str:
        """Call a tool. Return the text of its result."""
        (content,) = self.call(tool, **arguments).content
        return getattr(content, "text", "")

    def error(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool of a server with ``--structured`` that fails. Return its error."""
        result = self.call(tool, **arguments)
        assert result.is_error
        error: dict[str, Any] = result.structured_content["error"]
        return error


def environment(home: Path, roots: Mapping[str, str | Path]) -> dict[str, str]:
    """Return the environment that selects the archive and the roots of a server."""
    joined_roots = os.pathsep.join(f"{source}={path}" for source, path in roots.items())
    return {"BACKSCROLL_HOME": str(home), "BACKSCROLL_ROOTS": joined_roots, "HOME": str(home)}


@contextmanager
def start_stdio_server(
    environ: Mapping[str, str],
    *arguments: str,
    command: Sequence[str] = (COMMAND, "mcp"),
    mode: str = "auto",
) -> Iterator[McpClient]:
    """Start a server over standard input and output. Mode ``legacy`` uses the older protocol."""
    program, *command_arguments = command
    server = StdioServerParameters(command=program, args=[*command_arguments, *arguments], env=dict(environ))
    with Path(os.devnull).open("w") as log, start_blocking_portal() as portal:
        client = Client(stdio_client(server, errlog=log), mode=mode)
        with portal.wrap_async_context_manager(client):
            yield McpClient(portal, client)


def wait_for_sync(mcp_client: McpClient, sessions: int = 1) -> None:
    """Wait until the first sync has read and indexed this number of sessions."""
    for _ in range(300):
        total = re.search(r"of (\d+) sessions?", mcp_client.text("list_sessions"))
        is_indexed = "No matches." not in mcp_client.text("search_sessions", query="role:user")
        if total is not None and int(total[1]) >= sessions and is_indexed:
            return
        time.sleep(0.1)
    raise AssertionError("the first sync did not end in 30 seconds")
