"""HTTP transport on the loopback interface."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import uvicorn

from backscroll.errors import DestinationError
from backscroll.history.history import History
from backscroll.http_guard import Guard, token_in
from backscroll.mcp.call import ServerOptions
from backscroll.mcp.server import McpServer

_HOST = "127.0.0.1"


def serve(
    open_history: Callable[[], History],
    options: ServerOptions,
    *,
    port: int,
    token_file: Path,
    started: Callable[[str], None],
) -> None:
    """Serve until interrupted. Call `started` with the address. Port 0 selects a free port.

    Raise `DestinationError` if the port or the token file is not available.
    """
    mcp_server = McpServer(open_history, options)
    config = uvicorn.Config(
        Guard(mcp_server.server.streamable_http_app(host=_HOST), token_in(token_file)),
        host=_HOST,
        port=port,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )

    def on_listening(address: str) -> None:
        mcp_server.background_sync.start()
        started(address)

    server = _Server(config, on_listening)
    try:
        with suppress(KeyboardInterrupt):
            anyio.run(server.serve)
    except SystemExit as error:
        raise DestinationError(f"Port {port} is not available. Omit --port to use a free one", "") from error
    finally:
        mcp_server.close()


class _Server(uvicorn.Server):
    """Server that calls `on_listening` with its address."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[str], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    async def startup(self, sockets: object = None) -> None:
        await super().startup()
        for listener in self.servers:
            for socket in listener.sockets:
                self._on_listening(f"http://{_HOST}:{socket.getsockname()[1]}/mcp")
