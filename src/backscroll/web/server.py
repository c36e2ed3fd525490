"""The server: listen, open a browser, shut down. One server per archive."""

import logging
import os
import platform
import signal
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any
from urllib.parse import urlencode

import uvicorn
from starlette.types import ASGIApp

from backscroll.errors import DestinationError
from backscroll.history.history import History
from backscroll.history.web_server import RunningServer, ServerClaim
from backscroll.http_guard import is_address, is_loopback_host, new_token
from backscroll.web.app import LAUNCH_PATH, create_app

LOOPBACK = "127.0.0.1"
DEFAULT_PORT = 7433
SHUTDOWN_SECONDS = 1
_TCP = 6  # IPPROTO_TCP. No module imports `socket`; a test checks it.


def serve(
    open_history: Callable[[], History],
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    auto_sync: bool = True,
    started: Callable[[str, str], None],
) -> RunningServer | None:
    """Serve until interrupted. Call `started` with the address and the launch address.

    Return the running server of another process instead, if there is one for the same archive. Without a
    port, the default one is used, or any free one if it is taken. Raises `DestinationError` if the address
    is not available.
    """
    with ServerClaim(open_history()) as claim:
        if not claim.is_held and (running := claim.running_server()) is not None:
            return running
        token = new_token()
        is_local = is_loopback_host(f"[{host}]" if ":" in host else host)
        app = create_app(
            open_history,
            token,
            is_own_host=is_loopback_host if is_local else partial(_is_own_name, host.lower()),
            is_reading_open=is_local,
            auto_sync=auto_sync,
        )
        config, listener = listen(app, host, port)
        with listener:
            address = _address(host, listener.getsockname()[1])
            claim.publish(address, token)
            server = _Server(config, lambda: started(address, launch_url(address, token)))
            previous = signal.signal(signal.SIGTERM, _exit)
            try:
                with suppress(KeyboardInterrupt):
                    server.run(sockets=[listener])
            finally:
                signal.signal(signal.SIGTERM, previous)
    return None


def launch_url(address: str, token: str) -> str:
    """Return the address that gives a browser the token."""
    return f"{address}{LAUNCH_PATH}?{urlencode({'token': token})}"


def has_display() -> bool:
    """Return whether a browser can be opened on this machine."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(url: str) -> bool:
    """Open a browser. Return False if there is none, or no display."""
    return has_display() and webbrowser.open(url)


class _Server(uvicorn.Server):
    """Server that calls `on_listening` when it accepts requests."""

    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self._on_listening()


def listen(app: ASGIApp, host: str, port: int | None) -> tuple[uvicorn.Config, Any]:
    """Return the configuration and a listening socket."""
    for one in (DEFAULT_PORT, 0) if port is None else (port,):
        config = uvicorn.Config(
            app,
            host=host,
            port=one,
            log_level=logging.CRITICAL + 1,  # failures are raised
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        try:
            listener = _with_protocol(config.bind_socket())
        except SystemExit as error:
            failure = error.__context__
            continue
        try:
            # Several sockets can be bound to a port until the first of them listens.
            listener.listen(config.backlog)
        except OSError as error:
            failure = error
            listener.close()
        else:
            return config, listener
    reason = failure.strerror if isinstance(failure, OSError) else None
    advice = "Omit --port to use a free one." if port is not None else "Check the address."
    raise DestinationError(
        f"Cannot listen on {host} port {port or DEFAULT_PORT}: {reason or 'unknown reason'}. {advice}", ""
    ) from failure


def _with_protocol(bound: Any) -> Any:
    """Return the socket with its protocol, which `bind_socket` leaves out.

    Without it, asyncio does not set TCP_NODELAY, and each response on a kept-alive connection takes 40 ms.
    """
    return type(bound)(bound.family, bound.type, _TCP, fileno=bound.detach())


def _address(host: str, port: int) -> str:
    """Return the address for a browser on this machine."""
    name = {"0.0.0.0": LOOPBACK, "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{name}:{port}"


def _is_own_name(host: str, name: str) -> bool:
    """Return whether a Host header may name this machine. An IP address cannot be rebound by a site."""
    own = platform.node().lower()
    return is_loopback_host(name) or is_address(name) or name in (host, own, f"{own}.local")


def _exit(signal_number: int, frame: FrameType | None) -> None:
    """End like Ctrl-C, so that the files of the server are removed."""
    raise KeyboardInterrupt
