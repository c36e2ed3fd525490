"""Access check of the HTTP servers: Host, Origin and token."""

import hmac
import os
import secrets
from collections.abc import Callable, Collection
from ipaddress import ip_address
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from backscroll.errors import DestinationError

_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_READING_METHODS = ("GET", "HEAD")
MIN_TOKEN_CHARS = 32
_DEFAULT_PORT = "80"


def token_in(path: Path) -> str:
    """Return the token in a file that only its owner may read. The file is created if it is missing.

    Raises `DestinationError` if it cannot be read or written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists():
            path.chmod(0o600)
            known = path.read_text(encoding="ascii").strip()
            if len(known) >= MIN_TOKEN_CHARS:
                return known
            path.unlink()
        token = new_token()
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{token}\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DestinationError(
            f"The token file {path} cannot be read or written: {error}. Check its permissions.",
            path,
        ) from error
    return token


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(MIN_TOKEN_CHARS)


def token_cookie(port: int) -> str:
    """Return the name of the cookie with the token. Servers on other ports share the cookies of a host."""
    return f"backscroll-{port}"


def is_loopback_host(name: str) -> bool:
    """Return whether a host name without its port is one of this machine's loopback names."""
    return name in _LOOPBACK_HOSTS


def is_address(name: str) -> bool:
    """Return whether a host name is an IP address. A site cannot make such a name resolve to this server."""
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _error_text(scope: Scope, status: int, reason: str) -> Response:
    return PlainTextResponse(f"{reason}\n", status)


class Guard:
    """ASGI middleware that rejects requests with another Host, a foreign Origin or a wrong token.

    ``is_own_host`` decides on the name in the Host header. With ``has_cookie``, browsers can send the token
    in a cookie; then a write needs the Origin of this server, too. With ``is_reading_open``, only writes need
    the token. ``open_paths`` never need it. Paths below ``read_only_path`` cannot write with any method.
    ``error_response`` makes the response of a status and a reason.
    """

    def __init__(
        self,
        app: ASGIApp,
        token: str,
        *,
        is_own_host: Callable[[str], bool] = is_loopback_host,
        has_cookie: bool = False,
        is_reading_open: bool = False,
        open_paths: Collection[str] = (),
        read_only_path: str | None = None,
        error_response: Callable[[Scope, int, str], Response] = _error_text,
    ) -> None:
        self._app = app
        self._token = token.encode()
        self._is_own_host = is_own_host
        self._has_cookie = has_cookie
        self._is_reading_open = is_reading_open
        self._open_paths = frozenset(open_paths)
        self._read_only_path = f"{read_only_path}/" if read_only_path is not None else None
        self._error_response = error_response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope, Headers(scope=scope), scope["server"][1])
        if refusal is None:
            await self._app(scope, receive, send)
            return
        response = self._error_response(scope, *refusal)
        if response.status_code == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        await response(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers, port: int) -> tuple[int, str] | None:
        host = headers.get("host", "")
        name, host_port = _split_host(host)
        # DNS rebinding: another site's host name may resolve to this address.
        if headers.getlist("host") != [host] or host_port != str(port) or not self._is_own_host(name.lower()):
            return 421, "This server accepts requests to its own address only."
        origins = headers.getlist("origin")
        if any(_split_host(origin.lower()) != (f"http://{name.lower()}", host_port) for origin in origins):
            return 403, "Requests from other sites are rejected."
        is_read = scope["method"] in _READING_METHODS or (
            self._read_only_path is not None and scope["path"].startswith(self._read_only_path)
        )
        if scope["path"] in self._open_paths or (is_read and self._is_reading_open):
            return None
        if self._is_token(_bearer(headers)):
            return None
        if not self._has_cookie:
            return 401, "A token is required: Authorization: Bearer, then the content of the token file."
        if not self._is_token(_cookie(headers, token_cookie(port))):
            return 401, "Open the address that 'backscroll serve' printed. It contains the token."
        if not is_read and not origins:
            return 403, "Writing requires the Origin header of this server."
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token)


def _split_host(host: str) -> tuple[str, str]:
    """Return a name and its port. Browsers omit the port 80."""
    name, separator, port = host.rpartition(":")
    return (name, port) if separator and port.isdigit() else (host, _DEFAULT_PORT)


def _bearer(headers: Headers) -> str:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def _cookie(headers: Headers, name: str) -> str:
    return cookie_parser(headers.get("cookie", "")).get(name, "")
