"""Search in one commit of the index.

`Snapshot.search` for messages runs three stages, each only if the one before it found nothing:

    strict       every word as typed
    inflections  every word in any of its forms
    any part     some of the words

Sessions with the only word of a query in their title precede the others.

`ranking` sorts sessions for more than one word by these stages and the documents of whole sessions.

Tantivy scores by BM25, with a higher weight for prose than for tool text. The hits then pass through
`rank_block` (recency), `first_per_session` (grouping) and `take_page`. Ranking works on blocks of fixed
size, so that pages are consistent. Nothing runs in a second thread: counting takes a tenth of a search, and
handing over the interpreter lock takes longer.
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache, partial
from itertools import chain, pairwise
from typing import Any

import tantivy
from msgspec import Struct
from msgspec.structs import replace

from backscroll.index.compile import CompiledQuery, QueryPart, Synonyms, all_of, compile_filter, in_sessions
from backscroll.index.query import MessageFilter, Query
from backscroll.index.ranking import (
    DAY_MS,
    RERANKED_SESSIONS,
    FindParents,
    Hit,
    Row,
    combine_rankings,
    continue_ranking,
    first_per_session,
    rank_block,
    rerank,
    subagents_last,
    take_page,
)
from backscroll.index.schema import METADATA_TAG, TEXT_FIELDS, schema
from backscroll.lru_cache import LRUCache
from backscroll.model.search import SearchBy

_MAX_SESSIONS = 1 << 24
FIRST_RANKED_BLOCK = 500
FIRST_NEWEST_BLOCK = 2000  # larger: consecutive messages are often of the same session
_BLOCK_GROWTH = 4
_MIN_COVERAGE = 0.5  # of the words, weighted by rarity, in a session without a strict match
_MAX_REQUIRED_PARTS = 2  # up to so many words, such a session contains all of them
_ROUNDING = 1e-6
_SESSION_DOCUMENTS = 100
_UNFILTERED_SESSION_DOCUMENTS = 1000  # before a filter is applied
_MAX_EXTENDED_SESSIONS = 40  # from so many strict matches on, no other sessions are added
_MIN_SESSION_TEXT_HITS = 20
_TITLE_BONUS = 100.0  # more than any message scores for one word
_CACHED_QUERIES = 4
_CACHED_WORDS = 1 << 12


class HitPage(Struct, frozen=True):
    """One page of hits."""

    hits: list[Hit]
    total: int | None  # sessions or messages with every word; None if not counted
    row_count: int | None  # on all pages; None if not counted
    is_relaxed: bool = False  # no message has every word
    with_inflections: bool = False  # words match in other forms too


class TooManyTermsError(Exception):
    """A pattern matches more terms of the dictionary than Tantivy expands."""


class Counts(Struct, frozen=True):
    """Total and matches per session. The latter stay in Tantivy's format, because there are many."""

    total: int | None  # with every word; None if not counted
    buckets: list[dict[str, int]] = []  # sorted by session
    row_count: int | None = None  # with those that have some of the words; None if it is the total
    complete_sessions: frozenset[int] | None = None  # with every word; None if not distinguished

    def of(self, session: int) -> int:
        """Return the number of matching messages of a session; 1 if not counted."""
        index = bisect_left(self.buckets, session, key=lambda bucket: bucket["key"])
        bucket = self.buckets[index] if index < len(self.buckets) else None
        return bucket["doc_count"] if bucket is not None and bucket["key"] == session else 1


class _FirstBlock(Struct, frozen=True):
    """The first block of rows of a query, and the counts of all matches."""

    query: tantivy.Query
    rows: list[Row]
    counts: Counts
    with_inflections: bool = False
    in_title: tuple[Hit, ...] = ()  # the best message of each session that has the word in its title


class _SessionRanking(Struct, frozen=True):
    """The sessions that a query ranks, best first, and the query for those that follow."""

    hits: list[Hit]
    query: tantivy.Query  # every word or, if no message has them, some of the words
    counts: Counts  # of messages with every word
    with_every_word: frozenset[int]  # sessions that have every word, in any messages
    is_relaxed: bool
    with_inflections: bool


class Snapshot:
    """The index after one commit. Pages from the same snapshot are consistent."""

    def __init__(self, searcher: tantivy.Searcher) -> None:
        self.searcher = searcher
        # Compiling one query asks several times for the same words.
        self.has_word = lru_cache(maxsize=_CACHED_WORDS)(partial(_has_word, searcher))
        self._first_blocks = LRUCache[tuple[Query, SearchBy], _FirstBlock](_CACHED_QUERIES)
        self._rankings = LRUCache[tuple[Query, Synonyms, bool], _SessionRanking](_CACHED_QUERIES)

    def search(
        self,
        query: CompiledQuery,
        *,
        limit: int,
        offset: int,
        by: SearchBy,
        now: datetime | None = None,
        match_any: bool = False,
        with_counts: bool = True,
        find_parents: FindParents = lambda _: {},
    ) -> HitPage:
        """Return one page of the best messages, or of the sessions that contain them.

        With ``match_any``, messages with some of the words match even if others have all of them.
        """
        if query.is_empty:
            return HitPage([], 0, 0)
        today = int((now or datetime.now(UTC)).timestamp() * 1000) // DAY_MS
        parts = query.parts() if query.is_ranked else []
        if by == "session" and parts and not match_any:
            return self._search_sessions(
                query,
                parts,
                limit=limit,
                offset=offset,
                today=today,
                with_counts=with_counts,
                find_parents=find_parents,
            )
        search_any_part = partial(
            self._search_any_part,
            query,
            limit=limit,
            offset=offset,
            by=by,
            today=today,
            with_counts=with_counts,
        )
        if match_any and parts:
            return search_any_part(parts)
        first = self._cached_first_block(query, by, today) if with_counts else self._first_block(query, None)
        if not first.rows and (parts := query.parts()):
            return search_any_part(parts)
        blocks = self._blocks(first.query, first.rows, is_ranked=query.is_ranked, today=today)
        if by == "session":
            blocks = first_per_session(chain([list(first.in_title)], blocks))
            if query.is_ranked:
                best = [*next(blocks), *next(blocks, [])]
                best = subagents_last(best, find_parents({hit.session for hit in best}))
                blocks = chain([best], blocks)
        hits = take_page(blocks, limit=limit, offset=offset)
        return _counted_page(hits, first.counts, with_inflections=first.with_inflections)

    def _search_sessions(
        self,
        query: CompiledQuery,
        parts: list[QueryPart],
        *,
        limit: int,
        offset: int,
        today: int,
        with_counts: bool,
        find_parents: FindParents,
    ) -> HitPage:
        """Return the best sessions for several words, each with the message that shows best why."""
        key = query.query, query.synonyms, with_counts
        ranking = self._rankings.get(key) or self._rank_sessions(query, parts, today, with_counts=with_counts)
        self._rankings.put(key, ranking)
        best = subagents_last(ranking.hits, find_parents({hit.session for hit in ranking.hits}))
        hits = take_page(chain([best], self._remaining_sessions(ranking, today)), limit=limit, offset=offset)
        return _counted_page(
            hits,
            self._count_page(query, parts, ranking, hits) if with_counts else Counts(None),
            is_relaxed=ranking.is_relaxed,
            with_inflections=ranking.with_inflections,
        )

    def _remaining_sessions(self, ranking: _SessionRanking, today: int) -> Iterator[list[Hit]]:
        """Return the sessions after the ranked ones. Nothing is read before a page needs them."""
        first, _ = self._block(ranking.query, 0, FIRST_RANKED_BLOCK, is_ranked=True)
        blocks = self._blocks(ranking.query, first, is_ranked=True, today=today)
        yield from continue_ranking(ranking.hits, first_per_session(blocks))

    def _rank_sessions(
        self, query: CompiledQuery, parts: list[QueryPart], today: int, *, with_counts: bool
    ) -> _SessionRanking:
        """Compute the strict, relaxed and session text rankings and combine them."""
        strict_query, strict, with_inflections = self._strict_sessions(query, today)
        counts = Counts(None)
        if strict_query is not None and with_counts:
            counts = self._count_sessions(strict_query)
        by_session = self._search_session_text(query, parts)
        known = {hit.session: hit.position for hit in strict}
        any_part = query.any_part(parts)
        relaxed: list[Hit] = []
        with_every_word: frozenset[int] = frozenset()
        is_complete = query.query.requires_all and strict_query is not None
        if len(strict) < _MAX_EXTENDED_SESSIONS and not is_complete:
            relaxed = self._relaxed_sessions(query, any_part, by_session, today)
            known = {hit.session: hit.position for hit in relaxed} | known
            if query.has_no_filters:  # found by title, workspace or synonyms alone
                known = {hit.session: hit.position for hit in by_session} | known
            coverage = _session_coverage(
                self.searcher, query, parts, {hit.session for hit in relaxed[:RERANKED_SESSIONS]}
            )
            relaxed = rerank(relaxed, coverage)
            total_rarity = sum(_rarity(self.searcher, part) for part in parts)
            with_every_word = frozenset(
                session for session, share in coverage.items() if share >= total_rarity - _ROUNDING
            )
            if strict_query is not None:
                share = 1.0 if len(parts) <= _MAX_REQUIRED_PARTS else _MIN_COVERAGE
                needed = share * total_rarity - _ROUNDING
                known = {
                    session: position
                    for session, position in known.items()
                    if coverage.get(session, 0.0) >= needed
                } | {hit.session: hit.position for hit in strict}
                relaxed = [hit for hit in relaxed if hit.session in known]
        by_session = [hit for hit in by_session if hit.session in known]
        return _SessionRanking(
            combine_rankings(strict, relaxed, by_session, known),
            strict_query or any_part,
            counts,
            with_every_word,
            is_relaxed=strict_query is None,
            with_inflections=with_inflections,
        )

    def _strict_sessions(
        self, query: CompiledQuery, today: int
    ) -> tuple[tantivy.Query | None, list[Hit], bool]:
        """Return the query for every word, the sessions that it finds, and whether words are inflected.

        System messages and very long messages are ignored. The query is None if nothing matches.
        """
        for strict, with_inflections in ((query.strict(), False), (query.with_inflections(), True)):
            if strict is None:
                continue
            if hits := self._best_per_session(query.without_noise(strict), today):
                return strict, hits, with_inflections
            if self._block(strict, 0, 1, is_ranked=True)[0]:
                return strict, [], with_inflections
        return None, [], True

    def _relaxed_sessions(
        self, query: CompiledQuery, any_part: tantivy.Query, by_session: list[Hit], today: int
    ) -> list[Hit]:
        """Return the sessions with some of the words in a message, best first.

        Without filters, only sessions in which the words were said are considered, if there are enough of
        them: a search in all messages for many words is slow.
        """
        any_part = query.without_noise(any_part)
        if query.has_no_filters and len(by_session) >= _MIN_SESSION_TEXT_HITS:
            any_part = query.within_scored(any_part, {hit.session for hit in by_session})
        return self._best_per_session(any_part, today)

    def _best_per_session(self, query: tantivy.Query, today: int) -> list[Hit]:
        rows, _ = self._block(query, 0, FIRST_RANKED_BLOCK, is_ranked=True)
        return next(first_per_session(iter([rank_block(rows, today)])))

    def _search_session_text(self, query: CompiledQuery, parts: list[QueryPart]) -> list[Hit]:
        """Return the best sessions by their session documents. The positions are those of windows.

        Session documents have no attributes, so a filter is applied to the messages later.
        """
        session_text = query.in_session_text(parts)
        if session_text is None:
            return []
        size = _SESSION_DOCUMENTS if query.has_no_filters else _UNFILTERED_SESSION_DOCUMENTS
        rows, _ = self._block(session_text, 0, size, is_ranked=True)
        return next(first_per_session(iter([[Hit(row[1], row[2], row[0]) for row in rows]])))

    def _count_page(
        self, query: CompiledQuery, parts: list[QueryPart], ranking: _SessionRanking, hits: list[Hit]
    ) -> Counts:
        """Count the messages with every word or, in sessions without one, those with any of the words."""
        strict = ranking.counts
        strict_sessions = frozenset(bucket["key"] for bucket in strict.buckets)
        ranked = {hit.session for hit in ranking.hits}
        complete = strict_sessions | (ranking.with_every_word & ranked)
        others = {hit.session for hit in hits} - strict_sessions
        total = None if strict.total is None else len(complete)
        row_count = None if strict.total is None else len(strict_sessions | ranked)
        if not others:
            return Counts(total, strict.buckets, row_count, complete)
        within = query.within(query.any_part(parts), in_sessions(others))
        buckets = [*strict.buckets, *count_by_session(self.searcher, within)]
        buckets.sort(key=lambda bucket: bucket["key"])
        return Counts(total, buckets, row_count, complete)

    def _title_hits(self, query: CompiledQuery, block: _FirstBlock, today: int) -> list[Hit]:
        """Return the sessions with the only word of the query in their title, each with its best message."""
        in_title = query.in_title(with_inflections=block.with_inflections)
        if in_title is None or not block.rows:
            return []
        rows, _ = self._block(in_title, 0, _SESSION_DOCUMENTS, is_ranked=True)
        if not rows:
            return []
        within = query.within_scored(block.query, {session for _, session, _, _ in rows})
        best = self._best_per_session(within, today)
        return [Hit(hit.session, hit.position, _TITLE_BONUS + hit.score) for hit in best]

    def _cached_first_block(self, query: CompiledQuery, by: SearchBy, today: int) -> _FirstBlock:
        """Return the first block with counts, from the cache if a page of the same query was read before."""
        key = query.query, by
        block = self._first_blocks.get(key)
        if block is None:
            block = self._first_block(query, by)
            if by == "session" and query.is_ranked:
                block = replace(block, in_title=tuple(self._title_hits(query, block, today)))
        self._first_blocks.put(key, block)
        return block

    def _first_block(self, query: CompiledQuery, by: SearchBy | None) -> _FirstBlock:
        """Search for every word as typed or, if nothing matches, for every word in any form."""
        strict = query.strict()
        rows, counts = self._read_first_block(strict, query.is_ranked, by)
        if rows or (inflected := query.with_inflections()) is None:
            return _FirstBlock(strict, rows, counts)
        rows, counts = self._read_first_block(inflected, query.is_ranked, by)
        return _FirstBlock(inflected, rows, counts, with_inflections=True)

    def _read_first_block(
        self, query: tantivy.Query, is_ranked: bool, by: SearchBy | None = None
    ) -> tuple[list[Row], Counts]:
        """Return the first block of rows and the counts. Without ``by``, nothing is counted."""
        size = _first_block_size(is_ranked)
        if by != "session":
            rows, total = self._block(query, 0, size, is_ranked, with_count=by is not None)
            return rows, Counts(total)
        rows, _ = self._block(query, 0, size, is_ranked)
        return rows, self._count_sessions(query) if rows else Counts(0)

    def _count_sessions(self, query: tantivy.Query) -> Counts:
        buckets = count_by_session(self.searcher, query)
        return Counts(len(buckets), buckets)

    def _search_any_part(
        self,
        query: CompiledQuery,
        parts: list[QueryPart],
        *,
        limit: int,
        offset: int,
        by: SearchBy,
        today: int,
        with_counts: bool,
    ) -> HitPage:
        """Return the best messages with some of the words. There is no total: it would be nearly all."""
        any_part = query.any_part(parts)
        rows, _ = self._read_first_block(any_part, True)
        blocks = self._blocks(any_part, rows, is_ranked=True, today=today)
        if by == "message":
            hits = take_page(blocks, limit=limit, offset=offset)
            return _counted_page(hits, Counts(None), is_relaxed=True, with_inflections=True)
        groups = first_per_session(blocks)
        best = next(groups, [])
        coverage = _session_coverage(
            self.searcher, query, parts, {hit.session for hit in best[:RERANKED_SESSIONS]}
        )
        best = rerank(best, coverage)
        hits = take_page(chain([best], groups), limit=limit, offset=offset)
        buckets = []
        if with_counts:
            within = query.within(any_part, in_sessions({hit.session for hit in hits}))
            buckets = count_by_session(self.searcher, within)
        return _counted_page(hits, Counts(None, buckets), is_relaxed=True, with_inflections=True)

    def newest(self, query: tantivy.Query) -> Iterator[Hit]:
        """Return every match, newest first, messages without a timestamp last.

        Raises `TooManyTermsError` if a pattern in a phrase matches more terms than Tantivy expands.
        """
        try:
            rows, _ = self._read_first_block(query, False)
        except ValueError as error:
            if "max expansions" not in str(error):
                raise
            raise TooManyTermsError from error
        return chain.from_iterable(self._blocks(query, rows, is_ranked=False, today=0))

    def count_messages(self, query: tantivy.Query) -> int:
        """Return the number of matching messages."""
        return count_messages(self.searcher, query)

    @cached_property
    def metadata(self) -> str | None:
        """The JSON of the metadata document."""
        query = tantivy.Query.term_query(schema(), "tags", METADATA_TAG)
        hits = self.searcher.search(query, 1, count=False).hits
        value = self.searcher.doc(hits[0][1]).get_first("metadata") if hits else None
        return value if isinstance(value, str) else None

    def _block(
        self, query: tantivy.Query, offset: int, size: int, is_ranked: bool, *, with_count: bool = False
    ) -> tuple[list[Row], int | None]:
        order = None if is_ranked else "at"
        result = self.searcher.search(query, size, offset=offset, count=with_count, order_by_field=order)
        hits = result.hits  # each access builds a new list
        scores = [key if is_ranked else 0.0 for key, _ in hits]
        addresses = [address for _, address in hits]
        columns = [self.searcher.fast_field_values(name, addresses) for name in ("session", "position", "at")]
        return list(zip(scores, *columns, strict=True)), getattr(result, "count", None)

    def _blocks(
        self, query: tantivy.Query, first: list[Row], *, is_ranked: bool, today: int
    ) -> Iterator[list[Hit]]:
        """Yield blocks of hits of growing size, starting with the one that was already read."""
        block, offset, size = first, 0, _first_block_size(is_ranked)
        while block:
            yield rank_block(block, today) if is_ranked else [Hit(row[1], row[2], row[0]) for row in block]
            if len(block) < size:
                return
            offset, size = offset + size, size * _BLOCK_GROWTH
            block, _ = self._block(query, offset, size, is_ranked)


def _counted_page(
    hits: list[Hit], counts: Counts, *, is_relaxed: bool = False, with_inflections: bool = False
) -> HitPage:
    complete = counts.complete_sessions
    counted = [
        replace(
            hit,
            match_count=counts.of(hit.session),
            matches_all=not is_relaxed if complete is None else hit.session in complete,
        )
        for hit in hits
    ]
    return HitPage(
        counted,
        counts.total,
        counts.total if counts.row_count is None else counts.row_count,
        is_relaxed=is_relaxed,
        with_inflections=with_inflections,
    )


def _first_block_size(is_ranked: bool) -> int:
    return FIRST_RANKED_BLOCK if is_ranked else FIRST_NEWEST_BLOCK


def _has_word(searcher: tantivy.Searcher, word: str) -> bool:
    """Return whether a message or title contains a word."""
    return any(searcher.doc_freq(field, word) for field in (*TEXT_FIELDS, "session_title"))


def _session_coverage(
    searcher: tantivy.Searcher, query: CompiledQuery, parts: list[QueryPart], sessions: set[int]
) -> dict[int, float]:
    """Return the summed rarity of the parts that the messages of each session contain."""
    coverage = dict.fromkeys(sessions, 0.0)
    if not sessions:
        return coverage
    sessions_query = in_sessions(sessions)
    for part in parts:
        part_rarity = _rarity(searcher, part)
        for bucket in count_by_session(searcher, query.within(part.anywhere, sessions_query)):
            coverage[bucket["key"]] += part_rarity
    return coverage


def _rarity(searcher: tantivy.Searcher, part: QueryPart) -> float:
    """Return the weight of a part: the fewer messages contain it, the higher."""
    frequency = sum(searcher.doc_freq(field, term) for field, term in part.terms)
    return part.weight * math.log1p(searcher.num_docs / (frequency + 1)) if part.terms else 1.0


def count_by_session(searcher: tantivy.Searcher, query: tantivy.Query) -> list[dict[str, int]]:
    """Return the number of matching messages of each session, sorted by session id."""
    terms = {"field": "session", "size": _MAX_SESSIONS, "order": {"_key": "asc"}}
    result = searcher.aggregate(query, {"sessions": {"terms": terms}})
    buckets: list[dict[str, int]] = result["sessions"]["buckets"]
    return buckets


def count_messages(searcher: tantivy.Searcher, query: tantivy.Query) -> int:
    """Return the number of matching messages."""
    result = searcher.search(tantivy.Query.const_score_query(query, 0.0), 1, count=True)
    return getattr(result, "count", None) or 0


class FacetCounter:
    """Counts the messages with every word of a query, in one commit of the index.

    As in a search, words match in other forms if no message has all of them as typed.
    """

    def __init__(self, searcher: tantivy.Searcher) -> None:
        self._searcher = searcher
        self._queries: dict[Query, tantivy.Query] = {}

    def by_session(self, query: Query) -> dict[int, int]:
        """Return the number of messages by session id."""
        buckets = count_by_session(self._searcher, self._compiled(query))
        return {bucket["key"]: bucket["doc_count"] for bucket in buckets}

    def with_filter(self, query: Query, filter_: MessageFilter) -> int:
        """Return the number of messages that also pass a filter."""
        return count_messages(self._searcher, all_of([self._compiled(query), compile_filter(filter_)]))

    def time_range(self, query: Query) -> tuple[int, int] | None:
        """Return the first and the last time in milliseconds since 1970; None if no message has a time."""
        metrics = {"first": {"min": {"field": "at"}}, "last": {"max": {"field": "at"}}}
        found = self._aggregate(query, metrics)
        first, last = found["first"]["value"], found["last"]["value"]
        return (int(first), int(last)) if first is not None and last is not None else None

    def by_time(self, query: Query, bounds: Sequence[int]) -> list[int]:
        """Return the number of messages between each bound and the next, in milliseconds since 1970."""
        ranges = [{"from": start, "to": end} for start, end in pairwise(bounds)]
        found = self._aggregate(query, {"times": {"range": {"field": "at", "ranges": ranges}}})
        buckets = found["times"]["buckets"]
        counts = {int(bucket["from"]): bucket["doc_count"] for bucket in buckets if "from" in bucket}
        return [counts.get(start, 0) for start in bounds[:-1]]

    def _aggregate(self, query: Query, aggregations: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = self._searcher.aggregate(self._compiled(query), aggregations)
        return result

    def _compiled(self, query: Query) -> tantivy.Query:
        known = self._queries.get(query)
        if known is None:
            known = self._queries[query] = self._compile(query)
        return known

    def _compile(self, query: Query) -> tantivy.Query:
        compiled = CompiledQuery(query)
        strict = compiled.strict()
        if self._searcher.search(strict, 1, count=False).hits:
            return strict
        return compiled.with_inflections() or strict
