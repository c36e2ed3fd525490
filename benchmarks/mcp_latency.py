"""Response times of the MCP server: its start, and each tool called through a real client."""

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

from benchmarks.benchmark_context import BenchmarkContext
from benchmarks.result_table import Result

_COMMAND = str(Path(sys.executable).with_name("backscroll"))
_RUNS = 5
_BACKGROUND_SYNC_SECONDS = 5
_INITIALIZE_REQUEST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "benchmark", "version": "1"},
    },
}


def measure(context: BenchmarkContext) -> Iterator[Result]:
    """Measure the median of several starts, and of several calls of each tool."""
    command = [_COMMAND, "--home", str(context.home), "--root", f"claude-code={context.root}", "mcp"]
    start_times = [_time_start(command) for _ in range(_RUNS)]
    yield Result(
        key="mcp start",
        label="MCP server, start to first response",
        value=statistics.median(start_times) * 1000,
        unit="ms",
        target=1200,
    )
    for tool, seconds in anyio.run(_time_tools, command):
        yield Result(key=f"mcp {tool}", label=f"MCP tool {tool}", value=seconds * 1000, unit="ms")


def _time_start(command: list[str]) -> float:
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(_INITIALIZE_REQUEST).encode() + b"\n")
        server.stdin.flush()
        assert b'"result"' in server.stdout.readline()
        seconds = time.perf_counter() - start
        server.stdin.close()
    return seconds


async def _time_tools(command: list[str]) -> list[tuple[str, float]]:
    program, *arguments = command
    medians: list[tuple[str, float]] = []
    async with Client(stdio_client(StdioServerParameters(command=program, args=arguments))) as client:
        page = await client.call_tool("list_sessions", {"limit": 1, "offset": 100})
        text = "".join(getattr(part, "text", "") for part in page.content)
        ref, title = text.splitlines()[2].split(" · ")[:2]
        calls: list[tuple[str, dict[str, Any]]] = [
            ("list_sessions", {}),
            ("get_session", {"ref": ref}),
            ("search_sessions", {"query": title.split()[-1]}),
            ("recall", {"task": title}),
            ("list_workspaces", {}),
            ("stats", {"by": "month"}),
        ]
        await anyio.sleep(_BACKGROUND_SYNC_SECONDS)
        for tool, tool_arguments in calls:
            times = []
            for _ in range(_RUNS):
                start = time.perf_counter()
                assert not (await client.call_tool(tool, tool_arguments)).is_error
                times.append(time.perf_counter() - start)
            medians.append((tool, statistics.median(times)))
    return medians
