"""Word and pattern search over index and archive."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from backscroll import search
from backscroll.errors import UsageError
from backscroll.history.arguments import check_choice
from backscroll.history.stores import Stores
from backscroll.index import Filter as QueryFilter
from backscroll.index import Index, Query, parse
from backscroll.index.query.parser import FILTER_NAMES, filter_items, invalid_filters
from backscroll.index.results.highlights import find_spans
from backscroll.model import SearchResult, SessionSummary
from backscroll.model.export import SecretLocation
from backscroll.model.search import SessionMatches, has_words
from backscroll.search.matches import By, LearnSecrets, RedactText
from backscroll.search.search import resolve_filters, search_words
from backscroll.search.session_matches import find_pattern_in_session, find_words_in_session

if TYPE_CHECKING:
    from backscroll.model.search import FilterItem, InvalidFilter, SearchFacets
    from backscroll.redact.redactor import Redactor

__all__ = ["Search", "all_words_check", "highlighter"]

Kind = Literal["words", "exact", "regex"]
_MAX_SCANNED_MESSAGES = 1000  # scanned for secrets if there is no index


class Search:
    """Word and pattern search over index and archive."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def sessions(
        self,
        query: str,
        *,
        limit: int,
        offset: int,
        by: By,
        context: int,
        pattern: Kind,
        ignore_case: bool,
        filter_query: str,
        filters: Mapping[str, str | Sequence[str]],
        since: datetime | None,
        until: datetime | None,
        progress: Callable[[int, int], None] | None,
        redactor: Redactor | None,
    ) -> SearchResult:
        """Return one page of matches."""
        check_choice("kind of search", pattern, Kind)
        check_choice("unit of results", by, By)
        for name in filters:
            check_choice("filter", name, FILTER_NAMES)
        if context < 0:
            raise UsageError(f"The number of context lines must not be negative: {context}.")
        archive = self._stores.archive
        workspace = filters.get("workspace", "*")
        if isinstance(workspace, str) and "*" not in workspace:
            archive.sessions.workspace_hashes(workspace)  # raises WorkspaceNotFoundError if it is ambiguous
        parsed = _parse(query, pattern, filter_query)
        conditions = [
            QueryFilter(name, value)
            for name, values in filters.items()
            for value in ([values] if isinstance(values, str) else values)
        ]
        parsed = resolve_filters(archive, parsed.with_filters(*conditions, since=since, until=until))
        if pattern == "words":
            _check_words(query, parsed)
        redact, learn = self._redaction(redactor)

        def run(index: Index) -> SearchResult:
            if pattern == "words":
                return search_words(
                    archive,
                    index,
                    parsed,
                    limit=limit,
                    offset=offset,
                    by=by,
                    context=context,
                    redact=redact,
                    learn_secrets=learn,
                )
            compiled = search.compile_pattern(query, pattern, ignore_case=ignore_case)
            return search.search_pattern(
                archive,
                index,
                compiled,
                parsed,
                limit=limit,
                offset=offset,
                by=by,
                context=context,
                redact=redact,
                learn_secrets=learn,
                progress=None if compiled.is_narrow else progress,
            )

        return self._stores.index.query(run)

    def _redaction(self, redactor: Redactor | None) -> tuple[RedactText | None, LearnSecrets | None]:
        if redactor is None:
            return None, None

        def redact(text: str, ref: str, position: int) -> str:
            return redactor.redact_text(text, SecretLocation(ref, position))

        def learn(sessions: set[int]) -> None:
            search.learn_named_secrets(self._stores.archive, self._stores.index.index, redactor, sessions)

        return redact, learn

    def facets(self, query: str, *, pattern: Kind, ignore_case: bool, filter_query: str) -> SearchFacets:
        """Return how many messages that match each value of each filter would find."""
        check_choice("kind of search", pattern, Kind)
        archive = self._stores.archive
        parsed = resolve_filters(archive, _parse(query, pattern, filter_query))
        if pattern == "words":
            _check_words(query, parsed)

        def run(index: Index) -> SearchFacets:
            if pattern == "words":
                return search.count_word_facets(archive, index, index.with_language(parsed))
            compiled = search.compile_pattern(query, pattern, ignore_case=ignore_case)
            return search.count_pattern_facets(archive, index, compiled, parsed)

        return self._stores.index.query(run)

    def in_session(
        self,
        summary: SessionSummary,
        query: str,
        *,
        pattern: Kind = "words",
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
        compiled = search.compile_pattern(query, pattern, ignore_case=True)
        return find_pattern_in_session(archive, index, compiled, parsed, summary)

    def learn_secrets(self, redactor: Redactor, summary: SessionSummary) -> None:
        """Scan a session for named secrets, so that the redactor also replaces them without a name."""
        index = self._stores.index.index
        if not index.is_usable():
            redactor.scan(islice(self._stores.archive.messages.of_session(summary), _MAX_SCANNED_MESSAGES))
            return
        # A secret that the session names can occur without its name in a subagent.
        sessions = self._stores.archive.sessions.ids_with_subagents(summary, with_parent=True)
        search.learn_named_secrets(self._stores.archive, index, redactor, sessions)

    @staticmethod
    def filter_items(query: str) -> list[FilterItem]:
        """Return the valid filters and time limits of a query, with their places in the text."""
        return filter_items(query)

    @staticmethod
    def invalid_filters(query: str) -> list[InvalidFilter]:
        """Return the parts of a query that look like filters and are none. They are searched as text."""
        return invalid_filters(query)


def _parse(query: str, pattern: Kind, filter_query: str) -> Query:
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


def highlighter(query: str) -> Callable[[str], list[tuple[int, int]]] | None:
    """Return a function that finds the words of a query in a text; None if the query has only filters.

    A query without words is found as exact text.
    """
    if query.strip() and not has_words(query):
        exact = re.compile(re.escape(query.strip()))
        return lambda text: [match.span() for match in exact.finditer(text)]
    parsed = parse(query)
    if not parsed.words:
        return None
    return lambda text: [(span.start, span.end) for span in find_spans(text, parsed, with_inflections=True)]


def all_words_check(query: str) -> Callable[[str], bool] | None:
    """Return a function that checks whether a text has all words of a query; None if there are less than two.

    Stop words do not count.
    """
    parsed = parse(query)
    single_words = [replace(parsed, clauses=(clause,)) for clause in parsed.content_words]
    if len(single_words) < 2:
        return None
    return lambda text: all(find_spans(text, word, with_inflections=True).terms for word in single_words)
