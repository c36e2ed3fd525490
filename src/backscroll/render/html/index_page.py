"""HTML index of exported sessions: a table that can be filtered and sorted."""

from collections.abc import Iterable, Iterator
from html import escape
from urllib.parse import quote

from backscroll.model import SessionSummary
from backscroll.model.text import one_line
from backscroll.render.html.page_frame import page_end, page_start
from backscroll.render.session_header import format_time, session_title

__all__ = ["index_page"]

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
