"""How long an assistant waits: for the server to start, and for each tool, through a real client."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from benchmarks.figures import Figure
from benchmarks.stage import Stage

__all__ = ["figures"]

_COMMAND = str(Path(sys.executable).with_name("backscroll"))
_TIMES = 5
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


def figures(stage: Stage) -> Iterator[Figure]:
    """The first answer, then the middle of several calls of each tool."""
    command = [_COMMAND, "--home", str(stage.home), "--root", f"claude-code={stage.root}", "mcp"]
    waits = [_first_answer(command) for _ in range(_TIMES)]
    yield Figure(
        key="assistant start",
        what="the server's first answer after its start",
        value=statistics.median(waits) * 1000,
        unit="ms",
        wanted=1200,
    )
    for tool, took in anyio.run(_asked, command):
        yield Figure(key=f"assistant {tool}", what=f"{tool} through a client", value=took * 1000, unit="ms")


def _first_answer(command: list[str]) -> float:
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(_HELLO).encode() + b"\n")
        server.stdin.flush()
        assert b'"result"' in server.stdout.readline()
        took = time.perf_counter() - start
        server.stdin.close()
    return took


async def _asked(command: list[str]) -> list[tuple[str, float]]:
    program, *arguments = command
    found: list[tuple[str, float]] = []
    async with Client(stdio_client(StdioServerParameters(command=program, args=arguments))) as client:
        page = await client.call_tool("list_sessions", {"limit": 1, "offset": 100})
        (one,) = page.structured_content["data"]
        task = one.get("first_message_preview", "why is the test slow")
        calls: list[tuple[str, dict[str, Any]]] = [
            ("list_sessions", {}),
            ("get_session", {"ref": one["ref"]}),
            ("search_sessions", {"query": task.split()[-1]}),
            ("recall", {"task": task}),
            ("list_workspaces", {}),
            ("stats", {"by": "month"}),
        ]
        await anyio.sleep(5)  # until what changed was read, behind the answers
        for tool, asked in calls:
            waits = []
            for _ in range(_TIMES):
                start = time.perf_counter()
                assert not (await client.call_tool(tool, asked)).is_error
                waits.append(time.perf_counter() - start)
            found.append((tool, statistics.median(waits)))
    return found
