"""Pages from Jinja templates, the facts that every page shows, and static files.

Everything is escaped, and text from history has no invisible characters.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from backscroll.history.history import History
from backscroll.model.dates import iso
from backscroll.model.retention import WARNING_DAYS
from backscroll.model.sync import SyncStatus
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.humanize import (
    compact_number,
    format_age,
    format_percent,
    format_remaining,
    format_size,
    format_usd,
    short_sha,
)
from backscroll.render.session_header import format_time, session_title
from backscroll.web.served_history import served_history
from backscroll.web.urls import message_url, session_url

_MAX_LINE_CHARS = 300


def render(request: Request, name: str, status_code: int = 200, **context: Any) -> HTMLResponse:
    """Return a page."""
    shared = {"path": request.url.path, "query_text": "", **page_facts(request)._asdict()}
    return HTMLResponse(_environment().get_template(name).render(shared | context), status_code)


def render_block(name: str, **context: Any) -> Markup:
    """Return a part of a page."""
    return Markup(_environment().get_template(name).render(context))


def compile_template(name: str) -> None:
    """Compile a template before it is used."""
    _environment().get_template(name)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("backscroll.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_clean,
        auto_reload=False,
    )
    environment.filters |= {
        "age": _age,
        "compact": compact_number,
        "line": _line,
        "number": lambda number: f"{number:,}",
        "percent": format_percent,
        "remaining": format_remaining,
        "short_sha": short_sha,
        "size": format_size,
        "title_of": session_title,
        "usd": format_usd,
        "when": _when,
    }
    environment.globals |= {
        "message_url": message_url,
        "plural": pluralize,
        "session_url": session_url,
        "static_url": static_url,
        "sync_text": _sync_text,
        "warning_days": WARNING_DAYS,
    }
    return environment


def _clean(value: Any) -> Any:
    """Remove control and invisible characters from every text that a template prints."""
    if value is None:
        return ""
    return sanitize(value) if type(value) is str else value


def _line(text: str | None, width: int = _MAX_LINE_CHARS) -> str:
    return one_line(text or "", width)


def _sync_text(sync: SyncStatus) -> str:
    """Return the progress of a sync in words."""
    if sync.percent is None:
        return ""
    left = f", {format_remaining(sync.remaining_seconds)} left" if sync.remaining_seconds is not None else ""
    return f"{sync.percent} % done{left}."


def _age(at: datetime | None) -> Markup:
    """Return how long ago a time was, with the time itself as a tooltip."""
    if at is None:
        return Markup('<span class="unknown">unknown</span>')
    title, age = format_time(at, zone=None), format_age(at, datetime.now(UTC))
    return Markup(f'<time datetime="{iso(at)}" title="{title}">{age}</time>')


def _when(at: datetime | None) -> Markup:
    """Return a time in local time."""
    if at is None:
        return Markup('<span class="unknown">unknown</span>')
    return Markup(f'<time datetime="{iso(at)}">{format_time(at, zone=None)}</time>')


def highlighted(text: str, spans: "tuple[tuple[int, int], ...]", width: int = 0) -> Markup:
    """Return a text with its spans marked. With a width, only the part around the first span."""
    start, end = 0, len(text)
    if width and len(text) > width:
        first = spans[0][0] if spans else 0
        start = max(0, min(first - width // 3, len(text) - width))
        end = start + width
    parts, at = [Markup("… " if start else "")], start
    for begin, stop in spans:
        begin, stop = max(begin, start), min(stop, end)
        if begin >= stop:
            continue
        parts += [escape(sanitize(text[at:begin])), Markup("<mark>"), escape(sanitize(text[begin:stop]))]
        parts.append(Markup("</mark>"))
        at = stop
    parts += [escape(sanitize(text[at:end])), Markup(" …" if end < len(text) else "")]
    return Markup("").join(parts)


def distinct_labels(values: Iterable[tuple[str, str]]) -> list[str]:
    """Return the labels of values. If several have the same, each is followed by the rest of its value.

    A value is a path, or a host and a path; its label is the last part.
    """
    values = list(values)
    counts = Counter(label for _, label in values)
    return [f"{label}{_place(value, label)}" if counts[label] > 1 else label for value, label in values]


def _place(value: str, label: str) -> str:
    place = value.removesuffix(label).rstrip("/\\:")
    return f" ({place})" if place else ""


class PageFacts(NamedTuple):
    """State of the server when a request arrived."""

    sync: SyncStatus
    is_demo: bool
    can_write: bool  # the browser has the token
    revision: str


def page_facts(request: Request) -> PageFacts:
    """Return the facts for a request. They are determined once, before the history is read."""
    known: PageFacts | None = getattr(request.state, "facts", None)
    if known is None:
        served = served_history(request)
        can_write = request.app.state.can_write(request)
        known = PageFacts(served.sync_status(), served.is_demo, can_write, served.feed.revision)
        request.state.facts = known
    return known


_STATIC_NAMES = (
    "app.css", "icon.svg", "app.js", "charts.js", "health.js", "keys.js", "live.js", "palette.js",
    "commit.js", "search.js", "session.js", "sessions.js", "theme.js",
    "session.css", "diff_layout.js", "diffs.js", "find.js", "message_tools.js", "minimap.js",
    "session_facts.js",
)  # fmt: skip
_MEDIA_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_YEAR_SECONDS = 365 * 24 * 3600


def static_url(name: str) -> str:
    """Return the address of a style sheet, script or icon. It contains a hash of the content."""
    return f"/static/{_static_version()}/{name}"


def static_file(request: Request) -> Response:
    """Return a file. It can be cached for good if the address has the current version."""
    name, version = request.path_params["name"], request.path_params["version"]
    if name not in _STATIC_NAMES:
        return Response("Not found\n", 404, media_type="text/plain")
    is_current = version == _static_version()
    cache = f"public, max-age={_YEAR_SECONDS}, immutable" if is_current else "no-cache"
    return Response(
        _static_content(name),
        media_type=_MEDIA_TYPES[name.rpartition(".")[2]],
        headers={"Cache-Control": cache},
    )


@lru_cache(maxsize=len(_STATIC_NAMES))
def _static_content(name: str) -> bytes:
    content = files("backscroll.web").joinpath("static", name).read_bytes()
    return content + _source_styles() if name == "app.css" else content


def _source_styles() -> bytes:
    """Return the rules for the colors of the sources."""
    colors = History.source_colors().items()
    rules = (f".source-{name} {{ color: light-dark({light}, {dark}); }}\n" for name, (light, dark) in colors)
    return "".join(rules).encode()


@lru_cache(maxsize=1)
def _static_version() -> str:
    """Return a hash of all files. One for all, because scripts import each other by name."""
    return sha256(b"".join(map(_static_content, _STATIC_NAMES))).hexdigest()[:12]
