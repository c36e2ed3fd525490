"""Word and pattern search over index and archive, and all matches in one session.

Filters that only the archive can evaluate are replaced first (`resolve_filters`). Excluded words are
replaced by the sessions that contain them (`exclude_sessions`). The stages are those of `pattern_search`:

    hits              the index returns hits (words) or candidates (pattern)
    load_hit_texts    the archive returns the text of each hit
    locate / verify   find the words in the text, or drop candidates that do not match
    build matches     cut snippets with highlights and context

Texts are redacted before they are cut, because half a secret is not recognizable.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.query.messages import MessageInSession
from backscroll.errors import UsageError
from backscroll.index.highlights import SpanStream, find_spans, make_snippet
from backscroll.index.pattern import Pattern
from backscroll.index.query import (
    FILTER_NAMES,
    Clause,
    Query,
    SessionIds,
    filter_items,
    invalid_filters,
    parse,
)
from backscroll.index.query import Filter as QueryFilter
from backscroll.index.ranking import Hit
from backscroll.index.store import Index
from backscroll.model.search import (
    ANNOTATIONS_POSITION,
    SearchBy,
    SearchKind,
    SearchRequest,
    SearchResult,
    SecondMatch,
    SessionMatches,
    has_words,
)
from backscroll.model.session import SessionSummary
from backscroll.search.facets import count_pattern_facets, count_word_facets
from backscroll.search.filters import exclude_sessions, resolve_filters
from backscroll.search.matches import (
    FoundMessage,
    Redaction,
    RedactText,
    build_matches,
    learn_named_secrets,
    load_hit_texts,
    message_key,
    title_of,
)
from backscroll.search.pattern_search import (
    PATTERN_TIMEOUT_SECONDS,
    TitleMatcher,
    batches,
    compile_pattern,
    search_pattern,
    verify,
)
from backscroll.stores.lookup import check_choice, check_page
from backscroll.stores.stores import Stores

if TYPE_CHECKING:
    from backscroll.model.search import FilterItem, InvalidFilter, SearchFacets
    from backscroll.redact.redactor import Redactor


_MAX_SCANNED_MESSAGES = 1000  # scanned for secrets if there is no index
_MAX_SECOND_HITS = 200
_MAX_SECOND_CANDIDATES = 3  # per session
MAX_MATCHES = 100_000
Progress = Callable[[int, int], None]  # items processed, total


class Search:
    """Word and pattern search over index and archive."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def sessions(
        self,
        request: SearchRequest,
        *,
        progress: Progress | None = None,
        redactor: Redactor | None = None,
    ) -> SearchResult:
        """Return one page of matches."""
        check_page(request.limit, request.offset)
        check_choice("kind of search", request.pattern, SearchKind)
        check_choice("unit of results", request.by, SearchBy)
        for name in request.filters:
            check_choice("filter", name, FILTER_NAMES)
        if request.context < 0:
            raise UsageError(f"The number of context lines must not be negative: {request.context}.")
        archive = self._stores.archive
        workspace = request.filters.get("workspace", "*")
        if isinstance(workspace, str) and "*" not in workspace:
            archive.sessions.workspace_hashes(workspace)  # raises WorkspaceNotFoundError if it is ambiguous
        query = _parse(request.query, request.pattern, request.filter_query)
        conditions = [
            QueryFilter(name, value)
            for name, values in request.filters.items()
            for value in ([values] if isinstance(values, str) else values)
        ]
        query = query.with_filters(*conditions, since=request.since, until=request.until)
        query = resolve_filters(archive, query)
        if request.pattern == "words":
            _check_words(request.query, query)

        def run(index: Index) -> SearchResult:
            redaction = Redaction(archive, index, redactor) if redactor is not None else None
            if request.pattern == "words":
                return search_words(archive, index, query, request, redaction)
            pattern = compile_pattern(request.query, request.pattern, ignore_case=request.ignore_case)
            shown_progress = None if pattern.is_narrow else progress
            return search_pattern(archive, index, pattern, query, request, redaction, shown_progress)

        return self._stores.index.query(run)

    def facets(
        self, query: str, *, pattern: SearchKind, ignore_case: bool, filter_query: str
    ) -> SearchFacets:
        """Return how many messages that match each value of each filter would find."""
        check_choice("kind of search", pattern, SearchKind)
        archive = self._stores.archive
        parsed = resolve_filters(archive, _parse(query, pattern, filter_query))
        if pattern == "words":
            _check_words(query, parsed)

        def run(index: Index) -> SearchFacets:
            if pattern == "words":
                return count_word_facets(archive, index, index.with_language(parsed))
            compiled = compile_pattern(query, pattern, ignore_case=ignore_case)
            return count_pattern_facets(archive, index, compiled, parsed)

        return self._stores.index.query(run)

    def in_session(
        self,
        summary: SessionSummary,
        query: str,
        *,
        pattern: SearchKind = "words",
        filter_query: str = "",
        requires_all: bool = False,
    ) -> SessionMatches:
        """Return the messages of a session and its subagents that match a query.

        If no message has all words, those with some of them match, unless ``requires_all``.
        """
        if pattern == "words" and not has_words(query):
            pattern = "exact"  # the index contains no punctuation
        archive, index = self._stores.archive, self._stores.index.index
        if not index.is_usable() or not query.strip():
            return SessionMatches(())
        parsed = resolve_filters(archive, _parse(query, pattern, filter_query))
        if pattern == "words":
            return find_words_in_session(archive, index, parsed, summary, requires_all=requires_all)
        compiled = compile_pattern(query, pattern, ignore_case=True)
        return find_pattern_in_session(archive, index, compiled, parsed, summary)

    def learn_secrets(self, redactor: Redactor, summary: SessionSummary) -> None:
        """Scan a session for named secrets, so that the redactor also replaces them without a name."""
        index = self._stores.index.index
        if not index.is_usable():
            redactor.scan(islice(self._stores.archive.messages.of_session(summary), _MAX_SCANNED_MESSAGES))
            return
        # A secret that the session names can occur without its name in a subagent.
        sessions = self._stores.archive.sessions.ids_with_subagents(summary, with_parent=True)
        learn_named_secrets(self._stores.archive, index, redactor, sessions)

    @staticmethod
    def filter_items(query: str) -> list[FilterItem]:
        """Return the valid filters and time limits of a query, with their places in the text."""
        return filter_items(query)

    @staticmethod
    def invalid_filters(query: str) -> list[InvalidFilter]:
        """Return the parts of a query that look like filters and are none. They are searched as text."""
        return invalid_filters(query)


def _parse(query: str, pattern: SearchKind, filter_query: str) -> Query:
    """Return the query with its filters; for a pattern, only the filters. Raises `UsageError` for words."""
    if pattern == "words":
        # The filters come first: an operator at the end of the query would apply to them.
        return parse(f"{filter_query} {query}" if filter_query else query)
    filters = parse(filter_query)
    if not all(clause.is_filter for clause in filters.clauses):
        raise UsageError(
            f"{filter_query[:100]!r} contains words. Use only filters, such as 'role:user since:7d'."
        )
    return filters


def _check_words(query: str, parsed: Query) -> None:
    if parsed.is_empty:
        reason = "contains no words" if query.strip() else "is empty"
        raise UsageError(f"The query {reason}. Example: 'flaky test since:2026-10'.")


def search_words(
    archive: Archive,
    index: Index,
    query: Query,
    request: SearchRequest,
    redaction: Redaction | None,
) -> SearchResult:
    """Return the best messages for a query, or the best message of each session."""
    start = time.perf_counter()
    by, limit, offset = request.by, request.limit, request.offset
    redact = redaction.redact if redaction is not None else None
    # Without words to find, excluded words match every message of the other sessions: nothing to count.
    is_exclusion = any(clause.is_negated and not clause.is_filter for clause in query.clauses)
    with_counts = bool(query.words) or not is_exclusion
    query = index.with_language(query)
    if by == "session":
        query = exclude_sessions(archive, index, query)
    page = index.search(query, limit=limit, offset=offset, by=by, find_parents=archive.sessions.parents_of)
    texts = load_hit_texts(archive, map(message_key, page.hits))
    if redaction is not None:
        redaction.learn({hit.session for hit in page.hits})
    locate = partial(find_spans, query=query, with_inflections=page.with_inflections)
    locate_forms = partial(find_spans, query=query, with_inflections=True)
    found = [
        _locate_words(
            hit,
            *texts[message_key(hit)],
            redact,
            locate if hit.is_strict or hit.ranks is None else locate_forms,
        )
        for hit in page.hits
        if message_key(hit) in texts
    ]
    spread = {
        each.hit.session: (each.hit.position, set(each.spans.terms))
        for each in found
        if each.hit.ranks is not None and not each.hit.is_strict and isinstance(each.spans, SpanStream)
    }
    second = _find_second_matches(archive, index, query, spread, locate_forms, redact)
    matches = list(build_matches(archive, found, request.context))
    seen = offset + len(page.hits) if page.hits else 0
    return SearchResult(
        data=tuple(
            replace(
                match,
                match_count=each.hit.match_count if with_counts else 1,
                matches_all=each.hit.matches_all,
                also=second.get(each.hit.session),
            )
            for match, each in zip(matches, found, strict=True)
        ),
        total=page.total,
        total_at_least=None if page.total is not None else seen,
        limit=limit,
        offset=offset,
        row_count=page.row_count,
        has_more=0 < seen < page.row_count if page.row_count is not None else len(page.hits) == limit,
        took_ms=round((time.perf_counter() - start) * 1000, 3),
        is_relaxed=page.is_relaxed,
    )


def _locate_words(
    hit: Hit,
    message: MessageInSession,
    text: str,
    redact: RedactText | None,
    locate: Callable[[str], SpanStream],
) -> FoundMessage:
    """Find the words in the text of a hit or, if it contains none, in the title of the session."""

    def redacted(text: str) -> str:
        return redact(text, message.summary.ref, hit.position) if redact is not None else text

    text = redacted(text)
    spans = locate(text)
    if not spans.terms and hit.position != ANNOTATIONS_POSITION:
        title = redacted(title_of(message.summary))
        title_spans = locate(title)
        if title_spans.terms:
            return FoundMessage(hit, message, title, title_spans, is_title=True)
    return FoundMessage(hit, message, text, spans)


def _find_second_matches(
    archive: Archive,
    index: Index,
    query: Query,
    found: Mapping[int, tuple[int, set[int]]],
    locate: Callable[[str], SpanStream],
    redact: RedactText | None,
) -> dict[int, SecondMatch]:
    """Return another message for each session, if one contains words that the first does not.

    ``found`` is the position of the first message of each session, and the words that it contains.
    """
    if not found:
        return {}
    within = _within(query, found)
    hits = index.search(within, limit=_MAX_SECOND_HITS, by="message", match_any=True, with_counts=False).hits
    candidates: defaultdict[int, list[int]] = defaultdict(list)
    for hit in hits:
        if hit.position != found[hit.session][0] and len(candidates[hit.session]) < _MAX_SECOND_CANDIDATES:
            candidates[hit.session].append(hit.position)
    texts = load_hit_texts(
        archive, ((session, position) for session, positions in candidates.items() for position in positions)
    )
    second: dict[int, SecondMatch] = {}
    for session, positions in candidates.items():
        keys = [(session, position) for position in positions if (session, position) in texts]
        matches = (_second_match(*texts[key], key[1], found[session][1], locate, redact) for key in keys)
        match = next(filter(None, matches), None)
        if match is not None:
            second[session] = match
    return second


def _second_match(
    message: MessageInSession,
    text: str,
    position: int,
    known: set[int],
    locate: Callable[[str], SpanStream],
    redact: RedactText | None,
) -> SecondMatch | None:
    text = redact(text, message.summary.ref, position) if redact is not None else text
    spans = locate(text)
    if spans.terms <= known:
        return None
    snippet = make_snippet(text, spans, context=0)
    return SecondMatch(
        message_id=message.message.id,
        message_index=position,
        role=message.message.role,
        timestamp=message.message.timestamp,
        match=snippet.match,
        highlights=tuple(snippet.highlights),
        line_number=snippet.line_number,
    )


def find_words_in_session(
    archive: Archive, index: Index, query: Query, summary: SessionSummary, *, requires_all: bool = False
) -> SessionMatches:
    """Return the messages of a session and its subagents that match a query.

    If no message has all words, those with some of them match, unless ``requires_all``.
    """
    refs = archive.sessions.ids_with_subagents(summary)
    hits = index.find_messages(_within(query, refs), limit=MAX_MATCHES, requires_all=requires_all)
    found = [(hit.session, hit.position) for hit in hits]
    return SessionMatches(_locations(found, refs), is_complete=len(hits) < MAX_MATCHES)


def find_pattern_in_session(
    archive: Archive, index: Index, pattern: Pattern, filters: Query, summary: SessionSummary
) -> SessionMatches:
    """Return the messages of a session and its subagents that match a pattern and pass the filters."""
    deadline = time.perf_counter() + PATTERN_TIMEOUT_SECONDS
    refs = archive.sessions.ids_with_subagents(summary)
    titles = TitleMatcher(archive, pattern)
    found: list[tuple[int, int]] = []
    for batch in batches(index.candidates(pattern, _within(filters, refs), refine=False)):
        if len(found) >= MAX_MATCHES or time.perf_counter() > deadline:
            return SessionMatches(_locations(found, refs), is_complete=False)
        found += [message_key(each.hit) for each in verify(archive, batch, pattern, titles, is_counting=True)]
    return SessionMatches(_locations(found, refs))


def _within(query: Query, sessions: Iterable[int]) -> Query:
    return replace(query, clauses=(*query.clauses, Clause((SessionIds(frozenset(sessions)),))))


def _locations(found: Iterable[tuple[int, int]], refs: Mapping[int, str]) -> tuple[tuple[str, int], ...]:
    return tuple(
        sorted((refs[session], position) for session, position in found if position != ANNOTATIONS_POSITION)
    )
