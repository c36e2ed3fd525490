"""Search results."""

import re
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import UsageError
from backscroll.history import History
from backscroll.model import SearchMatch, SearchResult
from backscroll.model.search import InvalidFilter
from backscroll.web.pages.search_facets import Facets, QueryText, search_url
from backscroll.web.templating import highlighted, render
from backscroll.web.urls import parse_page, session_url, with_query

__all__ = ["facets_page", "search_page"]

PAGE_SIZE = 20
MAX_INLINE_SESSIONS = 200  # with more results, the counts are loaded after the page
_MAX_QUERY_CHARS = 1000
_MAX_PAGE = 1000
_MAX_SNIPPET_CHARS = 320
_FIXED_VALUE = re.compile(r"-?(since|until|role|is|has|source):", re.IGNORECASE)
Mode = Literal["words", "exact", "regex"]
_MODES: dict[str, Mode] = {"words": "words", "exact": "exact", "regex": "regex"}


def search_page(history: History, request: Request) -> Response:
    """Return the matches of a query, best first."""
    query, mode, completed = _parse(request)
    page = parse_page(request.query_params.get("page", "1"), _MAX_PAGE)
    result: SearchResult | None = None
    problem = ""
    invalid: list[InvalidFilter] = []
    if query.strip():
        try:
            result = history.search_sessions(
                completed,
                limit=PAGE_SIZE,
                offset=(page - 1) * PAGE_SIZE,
                pattern=mode,
                ignore_case=True,
            )
            invalid = history.invalid_filters(query) if mode == "words" else []
        except UsageError as error:
            problem = error.reason
    text = QueryText(query, history.filter_items(query) if mode == "words" else [])
    has_counts = mode == "words" and result is not None and not result.is_relaxed
    is_inline = completed == query and result is not None and (result.total or 0) <= MAX_INLINE_SESSIONS
    return render(
        request,
        "search.html",
        query_text=query,
        mode=mode,
        result=result,
        problem=problem,
        invalid=invalid,
        page=page,
        active=text.active(),
        facets=Facets(text, history.search_facets(query)) if has_counts and is_inline else None,
        facets_url=_facets_url(query, completed) if has_counts else None,
        matches=[_Match(match) for match in result.data] if result is not None else [],
        previous_url=_page_url(query, mode, page - 1) if page > 1 else None,
        next_url=_page_url(query, mode, page + 1) if result is not None and result.has_more else None,
    )


def facets_page(history: History, request: Request) -> Response:
    """Return only the counts. The search page loads them after the results."""
    query, mode, completed = _parse(request)
    if mode != "words" or not query.strip():
        raise UsageError("Only a search for words has counts.")
    text = QueryText(query, history.filter_items(query))
    return render(
        request,
        "search_facets_page.html",
        query_text=query,
        facets=Facets(text, history.search_facets(completed)),
        results_url=search_url(query),
    )


def _parse(request: Request) -> tuple[str, Mode, str]:
    """Return the query, the kind of search, and the query with a prefix if the last word is incomplete."""
    query = request.query_params.get("q", "")[:_MAX_QUERY_CHARS]
    mode = request.query_params.get("mode", "words")
    if mode not in _MODES:
        raise UsageError(f"{mode!r} is not a kind of search. Use one of: {', '.join(_MODES)}.")
    is_typing = request.query_params.get("typing") == "1" and mode == "words"
    return query, _MODES[mode], _completed(query) if is_typing else query


def _completed(query: str) -> str:
    """Return a query whose last word may be incomplete: as a prefix, or without it if it is one letter."""
    *others, last = query.split() or [""]
    # With a star, a date or a role would be no filter.
    if not query[-1:].isalnum() or _FIXED_VALUE.match(last):
        return query
    # Thousands of words start with a letter. A character of other scripts says more.
    if others and len(last) == 1 and last.isascii():
        return query[:-1].rstrip()
    return f"{query}*"


def _facets_url(query: str, completed: str) -> str:
    return with_query("/search/facets", {"q": query, "typing": 1 if completed != query else 0})


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
