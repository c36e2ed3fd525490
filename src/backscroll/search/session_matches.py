"""All matches in one session and its subagents."""

import time
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.index import Index, Query
from backscroll.index.pattern.pattern import Pattern
from backscroll.index.query.parser import Clause, SessionIds
from backscroll.model import SessionSummary
from backscroll.model.search import SessionMatches
from backscroll.model.searchable_text import ANNOTATIONS_POSITION
from backscroll.search.matches import message_key
from backscroll.search.pattern_search import PATTERN_TIMEOUT_SECONDS, batches, verify
from backscroll.search.title_hits import TitleMatcher

__all__ = ["find_pattern_in_session", "find_words_in_session"]

MAX_MATCHES = 100_000


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
