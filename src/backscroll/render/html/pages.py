"""Exported HTML pages: their frame, and the index of exported sessions.

A page is a single file that loads nothing and runs only its own script.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from urllib.parse import quote

from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, sanitize
from backscroll.render.session_header import format_time, session_title

_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Cpath d='M8 2a6 6 0 1 1-5.2 3M2 1v4h4' fill='none' stroke='%23b4582a' stroke-width='2'/%3E%3C/svg%3E"
)
_TOOLBAR = """\
<div class="bar" role="toolbar" aria-label="Page">
<input id="search" type="search" placeholder="Filter sessions" aria-label="Filter sessions">
<output id="found"></output>
<button id="theme" type="button" title="Switch between light and dark (t)">◐</button>
</div>
"""
_COLUMNS = (
    ("Session", ""),
    ("Last active", ""),
    ("Workspace", "wide"),
    ("Source", "wide"),
    ("Messages", "number wide"),
    ("Tokens", "number wide"),
)


def index_page(sessions: Iterable[tuple[SessionSummary, str]]) -> Iterator[str]:
    """Yield the page in chunks, from summaries and the names of their files."""
    yield page_start("Sessions", "index")
    yield f"{_TOOLBAR}<main>\n<header><h1>Sessions</h1></header>\n<table>\n<thead><tr>"
    for name, css_class in _COLUMNS:
        yield f'<th class="{css_class}"><button type="button">{name}</button></th>'
    yield "</tr></thead>\n<tbody>\n"
    for summary, file in sessions:
        yield _row(summary, file)
    yield "</tbody>\n</table>\n</main>\n"
    yield "<footer><p>Exported by Backscroll. Times are in UTC.</p></footer>\n"
    yield page_end("index")


def _row(summary: SessionSummary, file: str) -> str:
    title = session_title(summary)
    preview = one_line(summary.first_message_preview or "", 160)
    paragraph = f"<p>{escape(preview)}</p>" if preview and preview != title else ""
    updated = format_time(summary.updated_at)
    tokens = summary.total_tokens
    shown_tokens = f"{tokens:,}" if tokens is not None else ""
    workspace = one_line(summary.workspace_name or "", 80)
    return (
        f'<tr><td data-value="{escape(title.lower())}">'
        f'<a href="{quote(file)}">{escape(title)}</a>{paragraph}</td>'
        f'<td class="when">{updated}</td><td class="wide">{escape(workspace)}</td>'
        f'<td class="wide">{escape(summary.source)}</td>'
        f'<td class="number wide" data-value="{summary.message_count}">{summary.message_count:,}</td>'
        f'<td class="number wide" data-value="{-1 if tokens is None else tokens}">{shown_tokens}</td></tr>\n'
    )


def page_start(title: str, name: str) -> str:
    """Return everything before the content. `name` selects the script and the class of the page."""
    style, script = _asset("page.css"), _asset("theme.js") + _asset(f"{name}.js")
    policy = (
        f"default-src 'none'; style-src 'sha256-{_csp_hash(style)}'; script-src 'sha256-{_csp_hash(script)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="generator" content="Backscroll">\n'
        f'<link rel="icon" href="{_ICON}">\n'
        f"<title>{escape(sanitize(title))}</title>\n<style>{style}</style>\n</head>\n"
        f'<body class="{name}">\n'
    )


def page_end(name: str) -> str:
    """Return everything after the content."""
    return f"<script>{_asset('theme.js')}{_asset(f'{name}.js')}</script>\n</body>\n</html>\n"


def _csp_hash(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=8)
def _asset(name: str) -> str:
    return files("backscroll.render").joinpath("assets", name).read_text("utf-8")
