"""Jinja environment: everything is escaped, and text from history has no invisible characters."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from backscroll.model.dates import iso
from backscroll.model.sync import SyncStatus
from backscroll.model.text import one_line, pluralize, sanitize
from backscroll.render.session_header import format_time, session_title
from backscroll.render.terminal.humanize import (
    compact_number,
    format_age,
    format_cost,
    format_duration,
    format_percent,
    format_remaining,
    format_size,
    format_usd,
)
from backscroll.web.page_facts import page_facts
from backscroll.web.static_files import static_url
from backscroll.web.urls import message_url, session_url

__all__ = ["compile_template", "highlighted", "render", "render_block"]

_MAX_LINE_CHARS = 300


def render(request: Request, name: str, status_code: int = 200, **context: Any) -> HTMLResponse:
    """Return a page."""
    shared = {"path": request.url.path, "query_text": "", **page_facts(request)._asdict()}
    return HTMLResponse(_environment().get_template(name).render(shared | context), status_code)


def compile_template(name: str) -> None:
    """Compile a template before it is used."""
    _environment().get_template(name)


def render_block(name: str, **context: Any) -> Markup:
    """Return a part of a page."""
    return Markup(_environment().get_template(name).render(context))


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
        "cost": format_cost,
        "duration": format_duration,
        "line": _line,
        "number": lambda number: f"{number:,}",
        "percent": format_percent,
        "remaining": format_remaining,
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
