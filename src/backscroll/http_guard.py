"""Who may speak to the server over HTTP: programs of this machine that know the token."""

import hmac
import os
import secrets
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from backscroll.errors import DestinationError

__all__ = ["Guard", "token_in"]

_NAMES = ("127.0.0.1", "localhost")
_SHORTEST = 32  # characters


def token_in(path: Path) -> str:
    """The token that a file holds, which only its owner may read; made when there is none.

    Raises `DestinationError` when it cannot be read or written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists():
            path.chmod(0o600)
            known = path.read_text(encoding="ascii").strip()
            if len(known) >= _SHORTEST:
                return known
            path.unlink()
        token = secrets.token_urlsafe(_SHORTEST)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(f"{token}\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DestinationError(f"the token cannot be kept in {path}: {error}", path) from error
    return token


class Guard:
    """Lets through what names this machine, comes from no other page, and has the token."""

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
        here = {f"{name}:{port}" for name in _NAMES}
        # A page of another site may have a name of its own lead here.
        if headers.getlist("host") != [headers.get("host")] or headers.get("host") not in here:
            return PlainTextResponse("This server answers to its own address only.\n", 421)
        origins = headers.getlist("origin")
        if any(origin not in {f"http://{one}" for one in here} for origin in origins):
            return PlainTextResponse("Pages of other sites are not answered.\n", 403)
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
            told = "A token is needed: Authorization: Bearer, then what the token file holds.\n"
            return PlainTextResponse(told, 401, {"WWW-Authenticate": "Bearer"})
        return None
