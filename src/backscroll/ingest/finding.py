"""Search: the index says where, the archive says what stands there."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from backscroll.archive import Archive
from backscroll.index import Index, Pattern, Query
from backscroll.ingest.indexing import searchable
from backscroll.model import Message, SearchMatch, SearchResult, SessionSummary

if TYPE_CHECKING:
    from backscroll.index.spans import Span

__all__ = ["find_pattern", "find_words"]

By = Literal["session", "message"]
_TIME_LIMIT = 10.0  # seconds that a pattern without anything to narrow it by may take


def find_words(
    archive: Archive, index: Index, query: Query, *, limit: int, offset: int, by: By, context: int
) -> SearchResult:
    """The best messages for some words, or the best of each session."""
    from backscroll.index.spans import spans_of

    start = time.perf_counter()
    found = index.search(query, limit=limit, offset=offset, by=by)
    matches = []
    summaries = _Summaries(archive)
    for hit in found.hits:
        summary = summaries.get(hit.session)
        message = archive.message_at(summary, hit.position) if summary is not None else None
        if summary is None or message is None:
            continue
        text = searchable(message)
        matches.append(
            _match(
                archive,
                summary,
                message,
                hit.position,
                text,
                spans_of(text, query),
                context=context,
                score=hit.score,
                count=hit.match_count,
            )
        )
    return SearchResult(
        data=tuple(matches),
        total=found.total,
        limit=limit,
        offset=offset,
        has_more=offset + len(found.hits) < found.total,
        took_ms=round((time.perf_counter() - start) * 1000, 3),
        is_relaxed=found.is_relaxed,
    )


def find_pattern(
    archive: Archive,
    index: Index,
    pattern: Pattern,
    query: Query,
    *,
    limit: int,
    offset: int,
    by: By,
    context: int,
) -> SearchResult:
    """Messages that hold a pattern, newest first, each looked at in the archive."""
    start = time.perf_counter()
    deadline = start + _TIME_LIMIT
    matches: list[SearchMatch] = []
    seen: set[int] = set()
    met = 0
    is_cut_short = False
    summaries = _Summaries(archive)
    for hit in index.candidates(pattern, query):
        if by == "session" and hit.session in seen:
            continue
        if met > offset + limit:
            break
        if time.perf_counter() > deadline:
            is_cut_short = True
            break
        summary = summaries.get(hit.session)
        message = archive.message_at(summary, hit.position) if summary is not None else None
        if summary is None or message is None:
            continue
        text = searchable(message)
        spans = pattern.spans(text)
        if not spans:
            continue
        seen.add(hit.session)
        met += 1
        if offset < met <= offset + limit:
            found = _match(
                archive, summary, message, hit.position, text, spans, context=context, score=0.0, count=1
            )
            matches.append(found)
    return SearchResult(
        data=tuple(matches),
        total=None,
        total_at_least=met,
        limit=limit,
        offset=offset,
        has_more=met > offset + limit or is_cut_short,
        took_ms=round((time.perf_counter() - start) * 1000, 3),
        is_cut_short=is_cut_short,
    )


class _Summaries:
    """Sessions by number, each looked up once."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._known: dict[int, SessionSummary | None] = {}

    def get(self, number: int) -> SessionSummary | None:
        if number not in self._known:
            self._known[number] = self._archive.by_number(number)
        return self._known[number]


def _match(
    archive: Archive,
    summary: SessionSummary,
    message: Message,
    position: int,
    text: str,
    spans: Iterable["Span | tuple[int, int]"],
    *,
    context: int,
    score: float,
    count: int,
) -> SearchMatch:
    from backscroll.index.snippet import snippet

    found = snippet(text, spans, context=context)
    return SearchMatch(
        session_ref=summary.ref,
        session_id=summary.id,
        session_index=archive.index_of(summary) if summary.parent_ref is None else None,
        source=summary.source,
        title=summary.title,
        workspace_name=summary.workspace_name,
        message_id=message.id,
        message_index=position,
        role=message.role,
        timestamp=message.timestamp,
        match=found.match,
        highlights=tuple(found.highlights),
        context=tuple(found.context),
        line_number=found.line_number,
        score=score,
        match_count=count,
    )
