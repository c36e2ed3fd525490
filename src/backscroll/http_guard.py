"""Access check of the HTTP servers: Host, Origin and token."""

import hmac
import os
import secrets
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from backscroll.errors import DestinationError

__all__ = ["Guard", "token_in"]

_HOST_NAMES = ("127.0.0.1", "localhost")
MIN_TOKEN_CHARS = 32


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
        token = secrets.token_urlsafe(MIN_TOKEN_CHARS)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{token}\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DestinationError(
            f"The token file {path} cannot be read or written: {error}. Check its permissions.",
            path,
        ) from error
    return token


class Guard:
    """ASGI middleware that rejects requests with another Host, a foreign Origin or a wrong token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(Headers(scope=scope), scope["server"][1])
        await (refusal or self._app)(scope, receive, send)

    def _refusal(self, headers: Headers, port: int) -> PlainTextResponse | None:
        own_hosts = {f"{name}:{port}" for name in _HOST_NAMES}
        # DNS rebinding: another site's host name may resolve to this address.
        if headers.getlist("host") != [headers.get("host")] or headers.get("host") not in own_hosts:
            return PlainTextResponse("This server accepts requests to its own address only.\n", 421)
        origins = headers.getlist("origin")
        if any(origin not in {f"http://{one}" for one in own_hosts} for origin in origins):
            return PlainTextResponse("Requests from other sites are rejected.\n", 403)
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
            hint = "A token is required: Authorization: Bearer, then the content of the token file.\n"
            return PlainTextResponse(hint, 401, {"WWW-Authenticate": "Bearer"})
        return None
