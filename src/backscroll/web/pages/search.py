"""Search results, and the filters beside them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from backscroll.errors import UsageError
from backscroll.history.history import History
from backscroll.model.search import (
    FilterItem,
    InvalidFilter,
    SearchFacets,
    SearchMatch,
    SearchResult,
    has_words,
)
from backscroll.model.session import FacetValue
from backscroll.model.text import pluralize
from backscroll.web.charts import Bar, bar_chart
from backscroll.web.pages.sessions import Choice, FilterBox
from backscroll.web.templating import highlighted, render
from backscroll.web.urls import (
    MAX_QUERY_CHARS,
    MODE_LABELS,
    Mode,
    length_problem,
    parse_mode,
    parse_page,
    session_url,
    with_query,
)

PAGE_SIZE = 20
MAX_INLINE_SESSIONS = 200  # with more results, the counts are loaded after the page
_MAX_PAGE = 1000
_MAX_SNIPPET_CHARS = 320
_FIXED_VALUE = re.compile(r"-?(since|until|role|is|has|source):", re.IGNORECASE)

_MAX_OPEN_VALUES = 6  # of a filter; the others are folded
_DATES = ("since", "until")
_PRESETS = (("7 days", "7d"), ("30 days", "30d"), ("a year", "1y"))
_ROLE_LABELS = {"user": "You", "assistant": "Assistant", "thinking": "Thinking", "tool": "Tool calls"}
_ROLE_LABELS |= {"error": "Errors", "system": "System"}
_KIND_LABELS = {"edit": "Edits of files", "error": "Failures"}
_LAST_OPERATORS = re.compile(r"(?:(?:^|\s+)(?:OR|AND|NOT))+\s*$")
_NEEDS_QUOTES = re.compile(r"\s")


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


class QueryText:
    """The text of a query, which links change. With a ``pattern``, the text only has filters."""

    def __init__(
        self, text: str, items: Sequence[FilterItem], pattern: tuple[str, str] | None = None
    ) -> None:
        self._text = text
        self._items = items
        self._pattern = pattern  # the pattern and its kind

    def url(self, text: str) -> str:
        """Return the address of the results of a changed text."""
        if self._pattern is None:
            return with_query("/search", {"q": text})
        pattern, mode = self._pattern
        return with_query("/search", {"q": pattern, "mode": mode, "filter": text})

    @property
    def is_pattern(self) -> bool:
        """Whether text or a regular expression is searched, not words."""
        return self._pattern is not None

    def find(self, name: str, values: Iterable[str]) -> FilterItem | None:
        """Return the filter of a name with one of these values."""
        folded = {value.casefold() for value in values}
        return next(
            (
                item
                for item in self._items
                if item.name == name and not item.is_excluded and item.value.casefold() in folded
            ),
            None,
        )

    def without(self, *items: FilterItem) -> str:
        """Return the text without some filters."""
        text = self._text
        for item in sorted(items, key=lambda item: -item.start):
            text = f"{text[: item.start].rstrip()} {text[item.end :].lstrip()}".strip()
        return text

    def with_filter(self, name: str, value: str) -> str:
        """Return the text with one more filter."""
        return _joined(self._text.strip(), _filter_text(name, value))

    def with_dates(self, since: str, until: str = "") -> str:
        """Return the text with this time range instead of any other."""
        text = self.without(*(item for item in self._items if item.name in _DATES))
        return _joined(text, f"since:{since}", f"until:{until}" if until else "")

    def active(self) -> list[tuple[str, str, str]]:
        """Return the filters of the query: name, value and the address without each."""
        return [
            (f"{'not ' if item.is_excluded else ''}{item.name}", item.value, self.url(self.without(item)))
            for item in self._items
        ]

    def is_date(self, name: str) -> bool:
        """Return whether the time range is exactly this period."""
        dates = [(item.name, item.value) for item in self._items if item.name in _DATES]
        return sorted(dates) == [("since", name), ("until", name)]

    def has_since(self, value: str) -> bool:
        """Return whether the time range only starts at this value."""
        return [(item.name, item.value) for item in self._items if item.name in _DATES] == [("since", value)]

    def without_dates(self) -> str:
        """Return the text without a time range."""
        return self.without(*(item for item in self._items if item.name in _DATES))


def _filter_text(name: str, value: str) -> str:
    value = value.replace('"', "*")  # a quotation mark cannot be written in a quoted value
    return f'{name}:"{value}"' if _NEEDS_QUOTES.search(value) or '"' in value else f"{name}:{value}"


def _joined(text: str, *filters: str) -> str:
    """Return a query with filters. An operator at its end would apply to the first of them."""
    return " ".join(filter(None, (_LAST_OPERATORS.sub("", text), *filters)))


class Facets:
    """Filters with the number of messages that each of them would find.

    Each link adds a filter to the query, or removes it.
    """

    def __init__(self, text: QueryText, counts: SearchFacets) -> None:
        self._text = text
        self.total = counts.total
        self.is_partial = counts.is_partial
        self.is_pattern = text.is_pattern
        boxes = (
            self._box("role", "Role", [_labelled(value, _ROLE_LABELS) for value in counts.roles]),
            self._box("is", "Kind", [_labelled(value, _KIND_LABELS) for value in counts.kinds]),
            self._box("source", "Source", counts.sources),
            self._box("workspace", "Workspace", counts.workspaces),
            self._box("model", "Model", counts.models),
        )
        self.boxes = [box for box in boxes if box.choices]
        self.presets = [
            (
                label,
                text.url(text.without_dates() if text.has_since(value) else text.with_dates(value)),
                text.has_since(value),
            )
            for label, value in _PRESETS
        ]
        bars = [self._bar(value) for value in counts.dates]
        self.timeline: Markup | None = None
        if len(bars) > 1:
            self.timeline = bar_chart(bars, "Messages by date", is_narrow=True)
        self.dates = [
            Choice(bar.label, bar.label, int(bar.value), bar.url, bar.is_active)
            for bar in bars[::-1]
            if bar.value
        ]

    def _box(self, name: str, label: str, values: Iterable[FacetValue]) -> FilterBox:
        choices = [self._choice(name, value) for value in values]
        choices.sort(key=lambda choice: not choice.is_active)  # the active one is always visible
        return FilterBox(label, choices[:_MAX_OPEN_VALUES], choices[_MAX_OPEN_VALUES:])

    def _choice(self, name: str, value: FacetValue) -> Choice:
        item = self._text.find(name, (value.value, value.label))
        changed = self._text.without(item) if item is not None else self._text.with_filter(name, value.value)
        return Choice(value.label, value.value, value.count, self._text.url(changed), item is not None)

    def _bar(self, value: FacetValue) -> Bar:
        name, is_active = value.value, self._text.is_date(value.value)
        changed = self._text.without_dates() if is_active else self._text.with_dates(name, name)
        title = f"{_date_label(name)}: {pluralize(value.count, 'message')}"
        return Bar(
            _date_label(name), value.count, title, self._text.url(changed) if value.count else "", is_active
        )


def _labelled(value: FacetValue, labels: dict[str, str]) -> FacetValue:
    return FacetValue(value.value, labels.get(value.value, value.label), value.count)


def _date_label(name: str) -> str:
    day = date.fromisoformat(f"{name}-01-01"[:10])
    return {4: name, 7: f"{day:%b %Y}", 10: f"{day.day} {day:%b %Y}"}[len(name)]


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
