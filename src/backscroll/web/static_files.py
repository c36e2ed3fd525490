"""Style sheet and scripts, read once. Their addresses contain a hash of the content."""

from functools import lru_cache
from hashlib import sha256
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

__all__ = ["NAMES", "static_file", "static_url"]

NAMES = (
    "app.css", "icon.svg", "app.js", "charts.js", "health.js", "keys.js", "live.js", "palette.js",
    "commit.js", "search.js", "session.js", "sessions.js", "theme.js",
    "session.css", "diff_layout.js", "diffs.js", "find.js", "message_tools.js", "minimap.js",
    "session_facts.js",
)  # fmt: skip
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_YEAR_SECONDS = 365 * 24 * 3600


@lru_cache(maxsize=len(NAMES))
def _content(name: str) -> bytes:
    return files("backscroll.web").joinpath("static", name).read_bytes()


@lru_cache(maxsize=1)
def _version() -> str:
    """Return a hash of all files. One for all, because scripts import each other by name."""
    return sha256(b"".join(map(_content, NAMES))).hexdigest()[:12]


def static_url(name: str) -> str:
    """Return the address of a file."""
    return f"/static/{_version()}/{name}"


def static_file(request: Request) -> Response:
    """Return a file. It can be cached for good if the address has the current version."""
    name, version = request.path_params["name"], request.path_params["version"]
    if name not in NAMES:
        return Response("Not found\n", 404, media_type="text/plain")
    is_current = version == _version()
    cache = f"public, max-age={_YEAR_SECONDS}, immutable" if is_current else "no-cache"
    return Response(
        _content(name), media_type=_TYPES[name.rpartition(".")[2]], headers={"Cache-Control": cache}
    )
