"""A real server in a process of its own, and a real client that asks it."""

import os
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

__all__ = ["COMMAND", "HELLO", "Asking", "environment", "over_stdio", "wait_for"]

COMMAND = str(Path(sys.executable).with_name("backscroll"))
# What a client says first.
HELLO = {
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


class Asking:
    """A client, asked from code that does not wait in any loop."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self.client = client

    def run(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """What the client answers."""

        async def asked() -> T:
            return await ask(self.client)

        return self._portal.call(asked)

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """What a tool answers, error or not."""
        result = self.run(lambda client: client.call_tool(tool, arguments))
        assert isinstance(result, CallToolResult)
        return result

    def document(self, tool: str, **arguments: Any) -> Any:
        """What a tool answers for programs."""
        result = self.call(tool, **arguments)
        assert not result.is_error, result.content
        return result.structured_content

    def pages(self, tool: str, *, limit: int, **arguments: Any) -> Iterator[Any]:
        """What a tool that gives lists answers, page by page to the end."""
        offset, has_more = 0, True
        while has_more:
            page = self.document(tool, limit=limit, offset=offset, **arguments)
            yield page
            offset += len(page["data"])
            has_more = page["pagination"]["has_more"]

    def positions(self, ref: str, *, count: int) -> list[int]:
        """Where the messages of a session stand that it gives, page by page to the end."""
        found: list[int] = []
        start: int | None = 0
        while start is not None:
            page = self.document("get_session", ref=ref, count=count, **{"from": start})
            found += [one["position"] for one in page["messages"]]
            start = page.get("next_from")
        return found

    def text(self, tool: str, **arguments: Any) -> str:
        """What a tool answers for models."""
        (content,) = self.call(tool, **arguments).content
        return getattr(content, "text", "")

    def error(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool says when it cannot answer."""
        result = self.call(tool, **arguments)
        assert result.is_error
        error: dict[str, Any] = result.structured_content["error"]
        return error


def environment(home: Path, roots: Mapping[str, str | Path]) -> dict[str, str]:
    """Which archive and which history a server is about."""
    named = os.pathsep.join(f"{source}={path}" for source, path in roots.items())
    return {"BACKSCROLL_HOME": str(home), "BACKSCROLL_ROOTS": named, "HOME": str(home)}


@contextmanager
def over_stdio(
    environ: Mapping[str, str],
    *arguments: str,
    command: Sequence[str] = (COMMAND, "mcp"),
    mode: str = "auto",
) -> Iterator[Asking]:
    """A server started as clients start it; in mode ``legacy`` as those do that know no newer protocol."""
    program, *others = command
    server = StdioServerParameters(command=program, args=[*others, *arguments], env=dict(environ))
    with Path(os.devnull).open("w") as log, start_blocking_portal() as portal:
        client = Client(stdio_client(server, errlog=log), mode=mode)
        with portal.wrap_async_context_manager(client):
            yield Asking(portal, client)


def wait_for(asking: Asking, sessions: int) -> None:
    """Until the first sync, which no answer waits for, has read and indexed so many sessions."""
    for _ in range(300):
        listed = asking.document("list_sessions")["pagination"]["total"]
        if listed >= sessions and asking.document("search_sessions", query="role:user")["data"]:
            return
        time.sleep(0.1)
    raise AssertionError("the history was not read")
