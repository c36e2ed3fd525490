"""Search results."""

import re
from collections.abc import Mapping

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import UsageError
from backscroll.history import History
from backscroll.model import SearchMatch, SearchResult
from backscroll.model.search import InvalidFilter, has_words
from backscroll.web.pages.search_facets import Facets, QueryText
from backscroll.web.search_mode import MAX_QUERY_CHARS, MODE_LABELS, Mode, length_problem, parse_mode
from backscroll.web.templating import highlighted, render
from backscroll.web.urls import parse_page, session_url, with_query

__all__ = ["facets_page", "search_page"]

PAGE_SIZE = 20
MAX_INLINE_SESSIONS = 200  # with more results, the counts are loaded after the page
_MAX_PAGE = 1000
_MAX_SNIPPET_CHARS = 320
_FIXED_VALUE = re.compile(r"-?(since|until|role|is|has|source):", re.IGNORECASE)


class _Search(Struct, frozen=True, kw_only=True):
    """A search as in its URL. Filters are part of a query for words, else separate.

    Punctuation alone is searched as exact text, as on the command line.
    """

    query: str
    mode: Mode
    filter_query: str = ""
    is_typing: bool = False  # the last word may be incomplete

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> "_Search":
        query, filter_query = values.get("q", ""), values.get("filter", "")
        mode = parse_mode(values.get("mode", ""))
        if mode == "words" and filter_query:
            query, filter_query = f"{query} {filter_query}".strip(), ""
        if mode == "words" and query.strip() and not has_words(query):
            mode = "exact"
        is_typing = values.get("typing") == "1" and mode == "words"
        return cls(query=query, mode=mode, filter_query=filter_query.strip(), is_typing=is_typing)

    @property
    def completed(self) -> str:
        """The query with a prefix, if its last word may be incomplete."""
        return _completed(self.query) if self.is_typing else self.query

    def text(self, history: History) -> QueryText:
        """Return the text that the links of filters change."""
        if self.mode == "words":
            return QueryText(self.query, history.filter_items(self.query))
        return QueryText(
            self.filter_query, history.filter_items(self.filter_query), pattern=(self.query, self.mode)
        )

    def facets(self, history: History) -> Facets:
        """Return the counts of the filters. Raises `UsageError` for an invalid pattern."""
        counts = history.search_facets(
            self.completed, pattern=self.mode, ignore_case=True, filter_query=self.filter_query
        )
        return Facets(self.text(history), counts)

    def facets_url(self) -> str:
        """Return the address of the counts."""
        is_completed = self.completed != self.query
        return with_query("/search/facets", {**self._values(), "typing": 1 if is_completed else ""})

    def page_url(self, page: int) -> str:
        """Return the address of a page of the results."""
        return with_query("/search", {**self._values(), "page": page if page > 1 else ""})

    def find_url(self, ref: str) -> str:
        """Return the address of all matches in a session."""
        values = self._values()
        return session_url(ref, find=values["q"], mode=values["mode"], filter=values["filter"])

    def _values(self) -> dict[str, str]:
        mode = "" if self.mode == "words" else self.mode
        return {"q": self.query, "mode": mode, "filter": self.filter_query}


def search_page(history: History, request: Request) -> Response:
    """Return the matches of a query, best first."""
    search = _Search.parse(request.query_params)
    page = parse_page(request.query_params.get("page", "1"), _MAX_PAGE)
    result: SearchResult | None = None
    problem = length_problem(search.query, search.filter_query)
    invalid: list[InvalidFilter] = []
    if search.query.strip() and not problem:
        try:
            result = history.search_sessions(
                search.completed,
                limit=PAGE_SIZE,
                offset=(page - 1) * PAGE_SIZE,
                pattern=search.mode,
                ignore_case=True,
                filter_query=search.filter_query,
            )
            invalid = history.invalid_filters(search.query) if search.mode == "words" else []
        except UsageError as error:
            problem = error.reason
    active = search.text(history).active()
    has_counts = result is not None and not result.is_relaxed and bool(result.data or active)
    # Every match of a pattern must be verified: its counts always follow the page.
    is_inline = search.mode == "words" and search.completed == search.query
    is_inline = is_inline and result is not None and (result.row_count or 0) <= MAX_INLINE_SESSIONS
    return render(
        request,
        "search.html",
        query_text=search.query,
        filter_text=search.filter_query,
        mode=search.mode,
        modes=MODE_LABELS.items(),
        is_punctuation=search.mode == "exact" and request.query_params.get("mode", "words") == "words",
        result=result,
        problem=problem,
        max_query_chars=MAX_QUERY_CHARS,
        invalid=invalid,
        page=page,
        active=active,
        facets=search.facets(history) if has_counts and is_inline else None,
        facets_url=search.facets_url() if has_counts else None,
        matches=[_Match(match, search) for match in result.data] if result is not None else [],
        previous_url=search.page_url(page - 1) if page > 1 else None,
        next_url=search.page_url(page + 1) if result is not None and result.has_more else None,
    )


def facets_page(history: History, request: Request) -> Response:
    """Return only the counts. The search page loads them after the results."""
    search = _Search.parse(request.query_params)
    if not search.query.strip():
        raise UsageError("The query is empty.")
    if problem := length_problem(search.query, search.filter_query):
        raise UsageError(problem)
    return render(
        request,
        "search_facets_page.html",
        query_text=search.query,
        facets=search.facets(history),
        results_url=search.page_url(1),
    )


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


class _Match:
    """A match with the HTML of its excerpts and the address of its message."""

    def __init__(self, match: SearchMatch, search: _Search) -> None:
        self.match = match
        self.all_url = search.find_url(match.session_ref)
        self.url = self._message_url(match.message_index)
        self.excerpt = highlighted(match.match, match.highlights, _MAX_SNIPPET_CHARS)
        second = match.also
        self.second = highlighted(second.match, second.highlights, _MAX_SNIPPET_CHARS) if second else None
        self.second_url = self._message_url(second.message_index) if second else ""

    def _message_url(self, position: int) -> str:
        ref = self.match.session_ref
        return f"{session_url(ref, at=position)}#m{position}" if not self.match.is_note else session_url(ref)
