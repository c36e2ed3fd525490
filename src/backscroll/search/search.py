"""Word search.

The caller has replaced filters that only the archive can evaluate (`resolve_filters`). Excluded words are
replaced by the sessions that contain them (`exclude_sessions`). The stages are those of `pattern_search`:

    hits              the index returns hits (words) or candidates (pattern)
    load_hit_texts    the archive returns the text of each hit
    locate / verify   find the words in the text, or drop candidates that do not match
    build matches     cut snippets with highlights and context

Texts are redacted before they are cut, because half a secret is not recognizable.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageInSession
from backscroll.index import Filter as QueryFilter
from backscroll.index import Index, Query
from backscroll.index.query.parser import PlainTerm, SessionIds, replace_filters
from backscroll.index.query.ranking import Hit
from backscroll.index.results.highlights import SpanStream, find_spans
from backscroll.model import Filter, SearchResult
from backscroll.model.searchable_text import ANNOTATIONS_POSITION
from backscroll.search.excluded_sessions import exclude_sessions
from backscroll.search.hit_text import load_hit_texts, title_of
from backscroll.search.matches import (
    By,
    FoundMessage,
    LearnSecrets,
    RedactText,
    build_matches,
    message_key,
)
from backscroll.search.second_match import find_second_matches

__all__ = [
    "Progress",
    "resolve_filters",
    "search_words",
]

Progress = Callable[[int, int], None]  # items processed, total

_SESSION_FILTERS = {
    ("is", "gone"): Filter(is_gone=True, with_unlisted=True),
    ("is", "starred"): Filter(is_starred=True, with_unlisted=True),
    ("has", "edits"): Filter(has_edits=True, with_unlisted=True),
}


def resolve_filters(archive: Archive, query: Query) -> Query:
    """Replace filters that only the archive can evaluate, like ``workspace:``, ``tag:`` and ``is:gone``."""

    def look_up(filter: QueryFilter) -> Sequence[PlainTerm] | None:
        if filter.name == "workspace":
            hashes = archive.sessions.workspace_hashes(filter.value, is_strict=False)
            return [QueryFilter("workspace", workspace_hash) for workspace_hash in hashes] or None
        session_filter = _SESSION_FILTERS.get((filter.name, filter.value))
        if filter.name == "tag":
            session_filter = Filter(tags=(filter.value.lstrip("#").lower(),), with_unlisted=True)
        if session_filter is None:
            return None
        matching, others = archive.sessions.matching_ids(session_filter)
        is_negated = len(others) < len(matching)  # the smaller set is faster
        return [SessionIds(frozenset(others if is_negated else matching), is_negated)]

    return replace_filters(query, look_up)


def search_words(
    archive: Archive,
    index: Index,
    query: Query,
    *,
    limit: int,
    offset: int,
    by: By,
    context: int,
    redact: RedactText | None = None,
    learn_secrets: LearnSecrets | None = None,
) -> SearchResult:
    """Return the best messages for a query, or the best message of each session."""
    start = time.perf_counter()
    # Without words to find, excluded words match every message of the other sessions: nothing to count.
    is_exclusion = any(clause.is_negated and not clause.is_filter for clause in query.clauses)
    with_counts = bool(query.words) or not is_exclusion
    query = index.with_language(query)
    if by == "session":
        query = exclude_sessions(archive, index, query)
    search = index.start_search(
        query, limit=limit, offset=offset, by=by, find_parents=archive.sessions.parents_of
    )
    texts = load_hit_texts(archive, map(message_key, search.hits))
    if learn_secrets is not None:
        learn_secrets({hit.session for hit in search.hits})
    locate = partial(find_spans, query=query, with_inflections=search.with_inflections)
    locate_forms = partial(find_spans, query=query, with_inflections=True)
    found = [
        _locate_words(
            hit,
            *texts[message_key(hit)],
            redact,
            locate if hit.is_strict or hit.ranks is None else locate_forms,
        )
        for hit in search.hits
        if message_key(hit) in texts
    ]
    spread = {
        each.hit.session: (each.hit.position, set(each.spans.terms))
        for each in found
        if each.hit.ranks is not None and not each.hit.is_strict and isinstance(each.spans, SpanStream)
    }
    second = find_second_matches(archive, index, query, spread, locate_forms, redact)
    matches = list(build_matches(archive, found, context))
    page = index.finish_search(search)  # counting ran in the background until here
    counted = {message_key(hit): hit for hit in page.hits}
    seen = offset + len(page.hits) if page.hits else 0
    return SearchResult(
        data=tuple(
            replace(
                match,
                match_count=counted[message_key(each.hit)].match_count if with_counts else 1,
                matches_all=counted[message_key(each.hit)].matches_all,
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
