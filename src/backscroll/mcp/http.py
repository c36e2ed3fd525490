"""The server over HTTP, on this machine only."""

from collections.abc import Callable
from contextlib import suppress

import anyio
import uvicorn

from backscroll.errors import DestinationError
from backscroll.history import History
from backscroll.http_guard import Guard
from backscroll.mcp.server import Desk

__all__ = ["serve"]

_HOST = "127.0.0.1"


def serve(
    make: Callable[[], History],
    *,
    port: int,
    token: str,
    is_redacted: bool = True,
    started: Callable[[str], None],
) -> None:
    """Answer until interrupted; ``started`` is told the address. Port 0 is any that is free.

    Raises `DestinationError` when the port cannot be had.
    """
    desk = Desk(make, is_redacted=is_redacted)
    config = uvicorn.Config(
        Guard(desk.server.streamable_http_app(host=_HOST), token),
        host=_HOST,
        port=port,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )

    def listening(address: str) -> None:
        desk.upkeep.start()
        started(address)

    server = _Server(config, listening)
    try:
        with suppress(KeyboardInterrupt):
            anyio.run(server.serve)
    except SystemExit as error:
        raise DestinationError(f"port {port} cannot be had; leave it out for any that is free", "") from error
    finally:
        desk.close()


class _Server(uvicorn.Server):
    """Says where it listens, once it does."""

    def __init__(self, config: uvicorn.Config, listening: Callable[[str], None]) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: object = None) -> None:
        await super().startup()
        for listener in self.servers:
            for one in listener.sockets:
                self._listening(f"http://{_HOST}:{one.getsockname()[1]}/mcp")
