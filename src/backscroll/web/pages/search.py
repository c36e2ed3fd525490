"""Search results."""

from typing import Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import UsageError
from backscroll.history import History
from backscroll.model import SearchMatch, SearchResult
from backscroll.model.search import InvalidFilter
from backscroll.web.templating import highlighted, render
from backscroll.web.urls import parse_page, session_url, with_query

__all__ = ["search_page"]

PAGE_SIZE = 20
_MAX_QUERY_CHARS = 1000
_MAX_PAGE = 1000
_MAX_SNIPPET_CHARS = 320
_CHIPS = (
    ("Prompts", "role:user"),
    ("Answers", "role:assistant"),
    ("Edits", "is:edit"),
    ("Errors", "is:error"),
    ("Last 30 days", "since:30d"),
)
Mode = Literal["words", "exact", "regex"]
_MODES: dict[str, Mode] = {"words": "words", "exact": "exact", "regex": "regex"}


def search_page(history: History, request: Request) -> Response:
    """Return the matches of a query, best first."""
    query = request.query_params.get("q", "")[:_MAX_QUERY_CHARS]
    mode = request.query_params.get("mode", "words")
    page = parse_page(request.query_params.get("page", "1"), _MAX_PAGE)
    is_typing = request.query_params.get("typing") == "1"
    if mode not in _MODES:
        raise UsageError(f"{mode!r} is not a kind of search. Use one of: {', '.join(_MODES)}.")
    result: SearchResult | None = None
    problem = ""
    invalid: list[InvalidFilter] = []
    if query.strip():
        # While the user types, the last word may be incomplete.
        completed = f"{query}*" if is_typing and mode == "words" and query[-1].isalnum() else query
        try:
            result = history.search_sessions(
                completed,
                limit=PAGE_SIZE,
                offset=(page - 1) * PAGE_SIZE,
                pattern=_MODES[mode],
                ignore_case=True,
            )
            invalid = history.invalid_filters(query) if mode == "words" else []
        except UsageError as error:
            problem = error.reason
    return render(
        request,
        "search.html",
        query_text=query,
        mode=mode,
        result=result,
        problem=problem,
        invalid=invalid,
        page=page,
        chips=_chips(query) if mode == "words" else [],
        matches=[_Match(match) for match in result.data] if result is not None else [],
        previous_url=_page_url(query, mode, page - 1) if page > 1 else None,
        next_url=_page_url(query, mode, page + 1) if result is not None and result.has_more else None,
    )


class Chip(NamedTuple):
    """A filter that a link adds to the query, or removes from it."""

    label: str
    filter: str
    url: str
    is_active: bool


def _chips(query: str) -> list[Chip]:
    """Return frequent filters. Several sources mean either of them."""
    sources = [(name, f"source:{name}") for name in History.source_names()]
    return [_chip(query, label, filter_) for label, filter_ in (*_CHIPS, *sources)]


def _chip(query: str, label: str, filter_: str) -> Chip:
    words = query.split(" ")
    is_active = filter_ in words
    changed = [word for word in words if word != filter_] if is_active else [*words, filter_]
    return Chip(label, filter_, with_query("/search", {"q": " ".join(changed).strip()}), is_active)


class _Match:
    """A match with the HTML of its excerpts and the address of its message."""

    def __init__(self, match: SearchMatch) -> None:
        self.match = match
        self.url = self._message_url(match.message_index)
        self.excerpt = highlighted(match.match, match.highlights, _MAX_SNIPPET_CHARS)
        second = match.second
        self.second = highlighted(second.match, second.highlights, _MAX_SNIPPET_CHARS) if second else None
        self.second_url = self._message_url(second.message_index) if second else ""

    def _message_url(self, position: int) -> str:
        ref = self.match.session_ref
        return f"{session_url(ref, at=position)}#m{position}" if not self.match.is_note else session_url(ref)


def _page_url(query: str, mode: str, page: int) -> str:
    return with_query("/search", {"q": query, "mode": "" if mode == "words" else mode, "page": page})
