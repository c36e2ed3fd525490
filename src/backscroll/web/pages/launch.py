"""The launch address: it stores the token in a cookie, so that this browser may write."""

import hmac

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from backscroll.http_guard import token_cookie

__all__ = ["LAUNCH_PATH", "launch"]

LAUNCH_PATH = "/launch"


async def launch(request: Request) -> Response:
    """Set the cookie and continue to the home page, without the token in the address."""
    given = request.query_params.get("token", "")
    token: str = request.app.state.token
    if not hmac.compare_digest(given.encode(), token.encode()):
        return PlainTextResponse("This address is not valid any more. Run 'backscroll serve' again.\n", 403)
    response = RedirectResponse("/", 303)
    port = request.scope["server"][1]
    response.set_cookie(token_cookie(port), token, httponly=True, samesite="strict", path="/")
    return response
