"""Word search and pattern search.

Both run the same stages:

    resolve_filters   replace filters that only the archive can evaluate by session ids
    exclude_sessions  replace excluded words by the sessions that contain them
    hits              the index returns hits (words) or candidates (pattern)
    load_hit_texts    the archive returns the text of each hit
    locate / verify   find the words in the text, or drop candidates that do not match
    build matches     cut snippets with highlights and context

Texts are redacted before they are cut, because half a secret is not recognizable.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.archive.query.message_lookup import MessageInSession, MessageKey
from backscroll.index import Filter as QueryFilter
from backscroll.index import Index, Pattern, Query
from backscroll.index.query.parser import Clause, PlainTerm, SessionIds, replace_filters
from backscroll.index.query.ranking import Hit
from backscroll.index.results.highlights import Span, SpanStream, find_spans
from backscroll.index.results.snippet import make_snippet
from backscroll.model import Filter, SearchMatch, SearchResult, SessionSummary
from backscroll.model.searchable_text import ANNOTATIONS_POSITION
from backscroll.search.byte_prefilter import required_bytes
from backscroll.search.excluded_sessions import exclude_sessions
from backscroll.search.hit_text import load_hit_texts
from backscroll.search.second_match import find_second_matches
from backscroll.search.title_hits import TitleMatcher, title_of

__all__ = [
    "By",
    "LearnSecrets",
    "Progress",
    "RedactText",
    "find_positions",
    "resolve_filters",
    "search_pattern",
    "search_words",
]

By = Literal["session", "message"]
Progress = Callable[[int, int], None]  # items processed, total
RedactText = Callable[[str, str, int], str]  # text, session ref, message position
LearnSecrets = Callable[[set[int]], None]  # ids of sessions with text to redact

_SESSION_FILTERS = {
    ("is", "gone"): Filter(is_gone=True, with_unlisted=True),
    ("is", "starred"): Filter(is_starred=True, with_unlisted=True),
    ("has", "edits"): Filter(has_edits=True, with_unlisted=True),
}
PATTERN_TIMEOUT_SECONDS = 10.0
COUNT_TIMEOUT_SECONDS = 0.2
_FIRST_BATCH_SIZE = 64  # small: most patterns match within a few candidates
_MAX_BATCH_SIZE = 1024
_JOINED_TEXTS = 64  # texts that are tested together
_POSITIONS_PAGE_SIZE = 1000
_MAX_POSITIONS = 10_000


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


class _FoundMessage(Struct, frozen=True):
    """A hit with its message, the text to show and the matches in it."""

    hit: Hit
    message: MessageInSession
    text: str
    spans: SpanStream | Iterable[Span | tuple[int, int]]


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
    if by == "session":
        query = exclude_sessions(archive, index, query)
    search = index.start_search(query, limit=limit, offset=offset, by=by)
    texts = load_hit_texts(archive, map(_key, search.hits))
    if learn_secrets is not None:
        learn_secrets({hit.session for hit in search.hits})
    locate = partial(find_spans, query=query, with_inflections=search.with_inflections)
    locate_forms = partial(find_spans, query=query, with_inflections=True)
    found = [
        _locate_words(
            hit, *texts[_key(hit)], redact, locate if hit.is_strict or hit.ranks is None else locate_forms
        )
        for hit in search.hits
        if _key(hit) in texts
    ]
    spread = {
        each.hit.session: (each.hit.position, set(each.spans.terms))
        for each in found
        if each.hit.ranks is not None and not each.hit.is_strict and isinstance(each.spans, SpanStream)
    }
    second = find_second_matches(archive, index, query, spread, locate_forms, redact)
    matches = list(_build_matches(archive, found, context))
    page = index.finish_search(search)  # counting ran in the background until here
    counts = {_key(hit): hit.match_count for hit in page.hits} if with_counts else {}
    seen = offset + len(page.hits) if page.hits else 0
    return SearchResult(
        data=tuple(
            replace(match, match_count=counts.get(_key(each.hit), 1), second=second.get(each.hit.session))
            for match, each in zip(matches, found, strict=True)
        ),
        total=page.total,
        total_at_least=None if page.total is not None else seen,
        limit=limit,
        offset=offset,
        has_more=0 < seen < page.total if page.total is not None else len(page.hits) == limit,
        took_ms=round((time.perf_counter() - start) * 1000, 3),
        is_relaxed=page.is_relaxed,
    )


def _locate_words(
    hit: Hit,
    message: MessageInSession,
    text: str,
    redact: RedactText | None,
    locate: Callable[[str], SpanStream],
) -> _FoundMessage:
    """Find the words in the text of a hit or, if it contains none, in the title of the session."""

    def redacted(text: str) -> str:
        return redact(text, message.summary.ref, hit.position) if redact is not None else text

    text = redacted(text)
    spans = locate(text)
    if not spans.terms and hit.position != ANNOTATIONS_POSITION:
        title = redacted(title_of(message.summary))
        title_spans = locate(title)
        if title_spans.terms:
            return _FoundMessage(hit, message, title, title_spans)
    return _FoundMessage(hit, message, text, spans)


def find_positions(
    archive: Archive, index: Index, query: Query, summary: SessionSummary
) -> list[tuple[str, int]]:
    """Return ref and position of the messages of a session and its subagents that match a query."""
    refs = archive.sessions.ids_with_subagents(summary)
    within = replace(query, clauses=(*query.clauses, Clause((SessionIds(frozenset(refs)),))))
    found: list[tuple[str, int]] = []
    while len(found) % _POSITIONS_PAGE_SIZE == 0 and len(found) < _MAX_POSITIONS:
        page = index.start_search(
            within, limit=_POSITIONS_PAGE_SIZE, offset=len(found), by="message", with_counts=False
        )
        if not page.hits:
            break
        found += [(refs[hit.session], hit.position) for hit in page.hits]
    return sorted((ref, position) for ref, position in found if position != ANNOTATIONS_POSITION)


def search_pattern(
    archive: Archive,
    index: Index,
    pattern: Pattern,
    query: Query,
    *,
    limit: int,
    offset: int,
    by: By,
    context: int,
    redact: RedactText | None = None,
    learn_secrets: LearnSecrets | None = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Return the messages that match a pattern, newest first. Every candidate is verified in the archive."""
    start = time.perf_counter()
    deadline = start + PATTERN_TIMEOUT_SECONDS
    total = index.count_candidates(pattern, query) if progress is not None else 0
    titles = TitleMatcher(archive, pattern)
    sessions: set[int] = set()
    found: list[_FoundMessage] = []
    processed = matched = 0
    is_cut_short = False
    for batch in _batches(index.candidates(pattern, query)):
        candidates = [hit for hit in batch if by == "message" or hit.session not in sessions]
        for message in _verify(archive, candidates, pattern, titles):
            if by == "session" and message.hit.session in sessions:
                continue
            sessions.add(message.hit.session)
            matched += 1
            if offset < matched <= offset + limit:
                if learn_secrets is not None:
                    learn_secrets({message.hit.session})
                found.append(message if redact is None else _redact_match(message, redact, pattern))
        if matched > offset + limit:
            break
        processed += len(batch)
        if progress is not None:
            progress(processed, total)
        if time.perf_counter() > deadline:
            is_cut_short = True
            break
    counts = _count_matches(archive, index, pattern, query, found, titles) if by == "session" else {}
    return SearchResult(
        data=tuple(
            replace(match, match_count=counts.get(each.hit.session, 1))
            for match, each in zip(_build_matches(archive, found, context), found, strict=True)
        ),
        total=None,
        total_at_least=matched,
        limit=limit,
        offset=offset,
        has_more=matched > offset + limit or is_cut_short,
        took_ms=round((time.perf_counter() - start) * 1000, 3),
        is_cut_short=is_cut_short,
    )


def _batches(hits: Iterable[Hit]) -> Iterator[list[Hit]]:
    """Split hits into batches of growing size."""
    rest, size = iter(hits), _FIRST_BATCH_SIZE
    while batch := list(islice(rest, size)):
        yield batch
        size = min(size * 2, _MAX_BATCH_SIZE)


def _verify(
    archive: Archive, candidates: list[Hit], pattern: Pattern, titles: TitleMatcher
) -> list[_FoundMessage]:
    """Return the candidates that match in their text or in the title of their session, in order."""
    texts = load_hit_texts(archive, map(_key, candidates), required_bytes(pattern))
    found: dict[MessageKey, _FoundMessage] = {}
    rest = iter([hit for hit in candidates if _key(hit) in texts])
    while group := list(islice(rest, _JOINED_TEXTS)):
        if not pattern.may_be_in_any([texts[_key(hit)][1] for hit in group]):
            continue
        for hit in group:
            message, text = texts[_key(hit)]
            if spans := pattern.spans(text):
                found[_key(hit)] = _FoundMessage(hit, message, text, spans)
    title_hits = titles.match(_key(hit) for hit in candidates if _key(hit) not in found)
    for hit in candidates if title_hits else ():
        if _key(hit) in title_hits:
            message, title = title_hits[_key(hit)]
            found[_key(hit)] = _FoundMessage(hit, message, title, pattern.spans(title))
    return [found[_key(hit)] for hit in candidates if _key(hit) in found]


def _redact_match(found: _FoundMessage, redact: RedactText, pattern: Pattern) -> _FoundMessage:
    """Redact the text. Matches inside a redacted secret are not highlighted."""
    text = redact(found.text, found.message.summary.ref, found.hit.position)
    return found if text == found.text else _FoundMessage(found.hit, found.message, text, pattern.spans(text))


def _count_matches(
    archive: Archive,
    index: Index,
    pattern: Pattern,
    query: Query,
    found: list[_FoundMessage],
    titles: TitleMatcher,
) -> dict[int, int]:
    """Count the matching messages of each session. Stops after a time limit, so counts may be too low."""
    deadline = time.perf_counter() + COUNT_TIMEOUT_SECONDS
    counts: Counter[int] = Counter()
    sessions = Clause((SessionIds(frozenset(each.hit.session for each in found)),))
    within = replace(query, clauses=(*query.clauses, sessions))
    for batch in _batches(index.candidates(pattern, within, refine=False) if found else ()):
        counts.update(each.hit.session for each in _verify(archive, batch, pattern, titles))
        if time.perf_counter() > deadline:
            break
    return counts


def _build_matches(archive: Archive, found: list[_FoundMessage], context: int) -> Iterator[SearchMatch]:
    indexes = archive.sessions.list_indexes({each.hit.session for each in found})
    for each in found:
        hit, summary, message = each.hit, each.message.summary, each.message.message
        is_note = hit.position == ANNOTATIONS_POSITION
        snippet = make_snippet(each.text, each.spans, context=context)
        yield SearchMatch(
            session_ref=summary.ref,
            session_id=summary.id,
            session_index=indexes.get(hit.session),
            source=summary.source,
            title=summary.title,
            workspace_name=summary.workspace_name,
            message_id=message.id,
            message_index=0 if is_note else hit.position,
            role=message.role,
            timestamp=message.timestamp,
            match=snippet.match,
            highlights=tuple(snippet.highlights),
            context=tuple(snippet.context),
            line_number=snippet.line_number,
            score=hit.score,
            match_count=hit.match_count,
            parent_ref=summary.parent_ref,
            ranks=hit.ranks,
            is_note=is_note,
        )


def _key(hit: Hit) -> MessageKey:
    return hit.session, hit.position
