"""Standard input and output transport."""

import os
import signal
from collections.abc import Callable
from types import FrameType

import anyio
from mcp.server.stdio import stdio_server

from backscroll.history import History
from backscroll.mcp.options import ServerOptions
from backscroll.mcp.server import McpServer

__all__ = ["serve"]


def serve(open_history: Callable[[], History], options: ServerOptions) -> None:
    """Serve until the client closes the streams or the process is terminated."""
    server = McpServer(open_history, options)

    def exit_on_signal(signal_number: int, frame: FrameType | None) -> None:
        server.close()
        # A thread blocks on standard input and cannot be stopped.
        os._exit(128 + signal_number)

    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, exit_on_signal)
    try:
        anyio.run(_serve, server)
    except* BrokenPipeError:
        pass  # the client has closed the pipe


async def _serve(server: McpServer) -> None:
    try:
        async with stdio_server() as (read, write):
            server.background_sync.start()
            await server.server.run(read, write, server.server.create_initialization_options())
    finally:
        server.close()
