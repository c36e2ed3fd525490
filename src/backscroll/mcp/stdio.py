"""The server over standard input and output, as clients start it."""

from collections.abc import Callable

import anyio
from mcp.server.stdio import stdio_server

from backscroll.history import History
from backscroll.mcp.server import Desk

__all__ = ["serve"]


def serve(make: Callable[[], History], *, is_redacted: bool = True) -> None:
    """Answer until the client closes the streams."""
    anyio.run(_serve, make, is_redacted)


async def _serve(make: Callable[[], History], is_redacted: bool) -> None:
    desk = Desk(make, is_redacted=is_redacted)
    try:
        async with stdio_server() as (read, write):
            desk.upkeep.start()
            await desk.server.run(read, write, desk.server.create_initialization_options())
    finally:
        desk.close()
