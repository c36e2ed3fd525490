"""The server over standard input and output, as clients start it."""

import os
import signal
from collections.abc import Callable
from types import FrameType

import anyio
from mcp.server.stdio import stdio_server

from backscroll.history import History
from backscroll.mcp.server import Desk

__all__ = ["serve"]


def serve(make: Callable[[], History], *, is_redacted: bool = True) -> None:
    """Answer until the client closes the streams, or somebody ends the process."""
    desk = Desk(make, is_redacted=is_redacted)

    def leave(number: int, frame: FrameType | None) -> None:
        desk.close()
        # A thread waits for standard input, and nothing but more of it would let it end.
        os._exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)
    try:
        anyio.run(_serve, desk)
    except* BrokenPipeError:
        pass  # nobody listens any more


async def _serve(desk: Desk) -> None:
    try:
        async with stdio_server() as (read, write):
            desk.upkeep.start()
            await desk.server.run(read, write, desk.server.create_initialization_options())
    finally:
        desk.close()
