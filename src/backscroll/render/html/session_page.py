"""A session as a single, self-contained HTML file."""

from collections.abc import Iterable, Iterator
from html import escape
from urllib.parse import quote

from backscroll.model import SessionSummary
from backscroll.render.html.messages import TranscriptHtml
from backscroll.render.html.page_frame import page_end, page_start
from backscroll.render.session_header import header_fields, session_title
from backscroll.render.turns import TranscriptItem

__all__ = ["html"]

_TOOLBAR_START = '<div class="bar" role="toolbar" aria-label="Page">\n'
_TOOLBAR = """\
<input id="search" type="search" placeholder="Search this session" aria-label="Search this session">
<output id="found"></output>
<button id="previous" type="button" title="Previous match (Shift+Enter)">↑</button>
<button id="next" type="button" title="Next match (Enter)">↓</button>
<button id="expand" type="button" title="Expand or collapse all (e)">Expand</button>
<button id="theme" type="button" title="Switch between light and dark (t)">◐</button>
</div>
"""
_KEYS = (
    "<p><kbd>/</kbd> search, <kbd>Enter</kbd> next match, <kbd>j</kbd> <kbd>k</kbd> next and previous turn,"
    " <kbd>e</kbd> expand or collapse all, <kbd>t</kbd> light or dark</p>"
)


def html(
    summary: SessionSummary, items: Iterable[TranscriptItem], *, index_file: str | None = None
) -> Iterator[str]:
    """Yield the page in chunks. With an index page, the toolbar has a link to it."""
    title = session_title(summary)
    yield page_start(title, "session")
    link = f'<a href="{quote(index_file)}">All sessions</a>\n' if index_file is not None else ""
    yield f"{_TOOLBAR_START}{link}{_TOOLBAR}<main>\n<header>\n<h1>{escape(title)}</h1>\n<dl>\n"
    for name, value in header_fields(summary):
        yield f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>\n"
    yield "</dl>\n</header>\n"
    body = TranscriptHtml(highlights_folded=False)  # highlighting them takes three times as long as the rest
    for item in items:
        yield body.render(item)
    yield body.end_turn()
    yield "</main>\n"
    yield from _turn_list(body.prompts)
    yield f"<footer>{_KEYS}\n<p>Exported by Backscroll. Times are in UTC; ~ marks an inferred time.</p>\n"
    yield "</footer>\n"
    yield page_end("session")


def _turn_list(prompts: list[tuple[str, str]]) -> Iterator[str]:
    """Yield the list of turns. It is last in the file; the style sheet moves it to the side."""
    if len(prompts) < 2:
        return
    yield '<nav aria-label="Turns">\n<ol>\n'
    for element_id, prompt in prompts:
        yield f'<li><a href="#{element_id}">{escape(prompt)}</a></li>\n'
    yield "</ol>\n</nav>\n"
