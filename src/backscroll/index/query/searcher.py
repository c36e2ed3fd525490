"""Finding messages: the best first, each session once, everything counted.

The engine ranks by BM25 and weighs what people said above what tools put out. A
gentle preference for what is recent is applied to one block of hits after the
other: blocks are always cut at the same places, so that pages fit together.
"""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain

import tantivy
from msgspec import Struct

from backscroll.index.engine.background import BackgroundTask
from backscroll.index.engine.schema import METADATA_TAG, TEXT_FIELDS, schema
from backscroll.index.query.compile import CompiledQuery, QueryPart, in_sessions
from backscroll.index.query.counts import (
    By,
    Counts,
    count_by_session,
    count_known,
    count_messages,
    reckoned_with,
)
from backscroll.index.query.field_plan import Ways, ways_of
from backscroll.index.query.parser import Query
from backscroll.index.query.ranking import (
    DAY,
    Hit,
    Row,
    Scored,
    best_of,
    first_per_session,
    rank_block,
    take_page,
)
from backscroll.index.text.inflections import inflections

__all__ = ["By", "HitPage", "PendingSearch", "Snapshot", "TooManyTermsError"]

_BEST_BLOCK = 500  # the first block of the best
_NEWEST_BLOCK = 2000  # and of the newest, of which more are of the same session
_GROWTH = 4
_COVERED = 100  # sessions of which all messages count, not the best alone
_COVER_BONUS = 0.5
_KEPT = 4  # queries whose next pages are there at once


class TooManyTermsError(Exception):
    """A pattern fits more words of the dictionary than the engine goes through."""


class HitPage(Struct, frozen=True):
    """One page of what was found."""

    hits: list[Hit]
    total: int | None  # sessions or messages, whichever was asked for; None when they were not counted
    is_relaxed: bool = False  # no message has every word; these have the most
    with_inflections: bool = False  # words count in other forms, too


class PendingSearch:
    """A page that was found, while its sessions may still be counted."""

    def __init__(
        self,
        hits: list[Hit],
        counts: "Counts | BackgroundTask[Counts]",
        *,
        is_relaxed: bool = False,
        with_inflections: bool = False,
    ) -> None:
        self.hits = hits
        self.is_relaxed = is_relaxed
        self.with_inflections = with_inflections
        self._counts = counts

    def finish(self) -> HitPage:
        """The page with its counts."""
        counts = self._counts.result() if isinstance(self._counts, BackgroundTask) else self._counts
        hits = [Hit(hit.session, hit.position, hit.score, counts.of(hit.session)) for hit in self.hits]
        return HitPage(hits, counts.total, is_relaxed=self.is_relaxed, with_inflections=self.with_inflections)


class _Beginning(Struct, frozen=True):
    """What the engine found for a query: the first block of rows, and how many there are in all."""

    wanted: tantivy.Query
    rows: list[Row]
    counts: Counts | BackgroundTask[Counts]
    with_inflections: bool = False


class Snapshot:
    """The index as it was after one commit. Pages taken from the same snapshot fit together."""

    def __init__(self, searcher: tantivy.Searcher) -> None:
        self.searcher = searcher
        self._kept: dict[tuple[Query, By], _Beginning] = {}

    def search(
        self,
        matching: CompiledQuery,
        *,
        limit: int,
        offset: int,
        by: By,
        now: datetime | None = None,
        match_any: bool = False,
        with_counts: bool = True,
    ) -> PendingSearch:
        """One page of the best messages, or of the sessions they are in."""
        if matching.is_empty:
            return PendingSearch([], Counts(0))
        today = int((now or datetime.now(UTC)).timestamp() * 1000) // DAY
        if match_any and (pieces := matching.pieces()):
            return self._loosely(matching, pieces, limit=limit, offset=offset, by=by, today=today)
        found = self._begun(matching, by) if with_counts else self._beginning(matching, None)
        if not found.rows and (pieces := matching.pieces()):
            return self._loosely(matching, pieces, limit=limit, offset=offset, by=by, today=today)
        blocks = self._blocks(found.wanted, found.rows, is_ranked=matching.is_ranked, today=today)
        hits = take_page(blocks if by == "message" else first_per_session(blocks), limit=limit, offset=offset)
        return PendingSearch(hits, found.counts, with_inflections=found.with_inflections)

    def _begun(self, matching: CompiledQuery, by: By) -> _Beginning:
        """How a query begins, counted; that of the last few queries is kept for their next pages."""
        known = self._kept.pop((matching.query, by), None) or self._beginning(matching, by)
        while len(self._kept) >= _KEPT:
            self._kept.pop(next(iter(self._kept)))
        self._kept[matching.query, by] = known
        return known

    def _beginning(self, matching: CompiledQuery, by: By | None) -> _Beginning:
        """How a query begins: every word as it is typed or, where nothing has these, in whichever form."""
        plain = matching.plain()
        ways = ways_of(self.searcher, plain) if plain is not None else None
        wanted = matching.strict(is_said=ways is None or ways.are_said)
        rows, counts = (
            self._first(wanted, matching.is_ranked, by)
            if ways is None or by == "message"
            else self._first_by_ways(matching, wanted, ways, with_counts=by is not None)
        )
        if rows or (plain is not None and not self._has_other_forms(plain.words)):
            return _Beginning(wanted, rows, counts)
        if (varied := matching.varied()) is None:
            return _Beginning(wanted, rows, counts)
        return _Beginning(varied, *self._first(varied, matching.is_ranked, by), with_inflections=True)

    def _has_other_forms(self, words: list[str]) -> bool:
        """Whether any of these words is there in another form than the one that was typed."""
        others = {form for word in words for form in inflections(word)[1:]}
        return any(self.searcher.doc_freq(field, form) for form in others for field in TEXT_FIELDS)

    def _first(
        self, wanted: tantivy.Query, is_ranked: bool, by: By | None = None
    ) -> tuple[list[Row], Counts | BackgroundTask[Counts]]:
        """The first block, and what is found in all when it is to be counted."""
        size = _first_size(is_ranked)
        if by != "session":
            rows, total = self._block(wanted, 0, size, is_ranked, with_counts=by is not None)
            return rows, Counts(total)
        counts = BackgroundTask(lambda: self._counts(wanted))
        return self._block(wanted, 0, size, is_ranked)[0], counts

    def _first_by_ways(
        self, matching: CompiledQuery, wanted: tantivy.Query, ways: Ways, *, with_counts: bool
    ) -> tuple[list[Row], Counts | BackgroundTask[Counts]]:
        """The same for words that are asked for in the fields that have them."""
        if ways.most < _BEST_BLOCK:
            rows, _ = self._block(wanted, 0, _BEST_BLOCK, True) if ways.most else ([], None)
            return rows, count_known(row[1] for row in rows) if with_counts else Counts(None)
        every = matching.only(ways.every(matching.conditions)) if ways.is_faster else wanted
        counts = BackgroundTask(lambda: self._counts(every)) if with_counts else Counts(None)
        return self._best(matching, ways) or self._block(wanted, 0, _BEST_BLOCK, True)[0], counts

    def _best(self, matching: CompiledQuery, ways: Ways) -> list[Row]:
        """The first block, when it is found without weighing everything; else nothing."""
        if self._documents is None:
            return []
        best = ways.best(matching.conditions, number=_BEST_BLOCK, documents=self._documents)
        if best is None:
            return []
        hits = best_of(
            [
                self.searcher.search(matching.only(query), _BEST_BLOCK, count=False).hits
                for query in best.queries
            ],
            _BEST_BLOCK,
        )
        return self._rows(hits) if len(hits) == _BEST_BLOCK and hits[-1][0] > best.bound else []

    def _counts(self, wanted: tantivy.Query) -> Counts:
        buckets = count_by_session(self.searcher, wanted)
        return Counts(len(buckets), buckets)

    def _loosely(
        self, matching: CompiledQuery, pieces: list[QueryPart], *, limit: int, offset: int, by: By, today: int
    ) -> PendingSearch:
        """The best of what has some of the words. It is not counted: nearly everything has one of them."""
        wanted = matching.any_of(pieces)
        first, _ = self._first(wanted, True)
        blocks = self._blocks(wanted, first, is_ranked=True, today=today)
        if by == "message":
            hits = take_page(blocks, limit=limit, offset=offset)
            return PendingSearch(hits, Counts(None), is_relaxed=True, with_inflections=True)
        groups = first_per_session(blocks)
        best = self._covering(matching, pieces, next(groups, []))
        hits = take_page(chain([best], groups), limit=limit, offset=offset)
        there = matching.among(wanted, in_sessions({hit.session for hit in hits}))
        counts = BackgroundTask(lambda: Counts(None, count_by_session(self.searcher, there)))
        return PendingSearch(hits, counts, is_relaxed=True, with_inflections=True)

    def _covering(self, matching: CompiledQuery, pieces: list[QueryPart], hits: list[Hit]) -> list[Hit]:
        """The best sessions ranked anew: what other messages of a session have of the words counts too."""
        if not hits:
            return []
        some = hits[:_COVERED]
        scores = {hit.session: hit.score for hit in some}
        there = in_sessions(scores)

        def having(pieces: list[QueryPart]) -> list[list[int]]:
            """The sessions that have each of the pieces."""
            found = (count_by_session(self.searcher, matching.among(piece.query, there)) for piece in pieces)
            return [[bucket["key"] for bucket in buckets] for buckets in found]

        half = len(pieces) // 2
        others = BackgroundTask(lambda: having(pieces[half:]))
        covered = having(pieces[:half])
        for piece, sessions in zip(pieces, covered + others.result(), strict=True):
            bonus = _COVER_BONUS * self._rarity(piece)
            for session in sessions:
                scores[session] += bonus
        again = [Hit(hit.session, hit.position, scores[hit.session]) for hit in some]
        return sorted(again, key=lambda hit: -hit.score) + hits[_COVERED:]

    def _rarity(self, piece: QueryPart) -> float:
        known = sum(self.searcher.doc_freq(field, term) for field, term in piece.terms)
        return math.log1p(self.searcher.num_docs / (known + 1)) if piece.terms else 1.0

    def newest(self, wanted: tantivy.Query) -> Iterator[Hit]:
        """Every message that the engine finds, newest first, those without a time last.

        Raises `TooManyTermsError` when a pattern beside others fits more words than the engine goes through.
        """
        try:
            first, _ = self._first(wanted, False)
        except ValueError as error:
            if "max expansions" not in str(error):
                raise
            raise TooManyTermsError from error
        return chain.from_iterable(self._blocks(wanted, first, is_ranked=False, today=0))

    def count_messages(self, wanted: tantivy.Query) -> int:
        """How many messages the engine finds."""
        return count_messages(self.searcher, wanted)

    @cached_property
    def _documents(self) -> int | None:
        return reckoned_with(self.searcher)

    @cached_property
    def note(self) -> str | None:
        """What is stored with the one document that is no message."""
        hits = self.searcher.search(
            tantivy.Query.term_query(schema(), "tags", METADATA_TAG), 1, count=False
        ).hits
        value = self.searcher.doc(hits[0][1]).get_first("note") if hits else None
        return value if isinstance(value, str) else None

    def _block(
        self, wanted: tantivy.Query, offset: int, size: int, is_ranked: bool, *, with_counts: bool = False
    ) -> tuple[list[Row], int | None]:
        order = None if is_ranked else "at"
        found = self.searcher.search(wanted, size, offset=offset, count=with_counts, order_by_field=order)
        hits = found.hits  # made anew each time it is asked for
        return self._rows(hits, is_ranked), getattr(found, "count", None)

    def _rows(self, hits: list[Scored], is_ranked: bool = True) -> list[Row]:
        scores = [key if is_ranked else 0.0 for key, _ in hits]
        addresses = [address for _, address in hits]
        columns = [self.searcher.fast_field_values(name, addresses) for name in ("session", "position", "at")]
        return list(zip(scores, *columns, strict=True))

    def _blocks(
        self, wanted: tantivy.Query, first: list[Row], *, is_ranked: bool, today: int
    ) -> Iterator[list[Hit]]:
        block, offset, size = first, 0, _first_size(is_ranked)
        while block:
            yield rank_block(block, today) if is_ranked else [Hit(row[1], row[2], row[0]) for row in block]
            if len(block) < size:
                return
            offset, size = offset + size, size * _GROWTH
            if is_ranked and block is first:
                # The last digits of scores may differ when words were asked for in another way.
                known = {row[1:3] for row in first}
                block = [
                    row for row in self._block(wanted, 0, offset + size, True)[0] if row[1:3] not in known
                ]
            else:
                block, _ = self._block(wanted, offset, size, is_ranked)


def _first_size(is_ranked: bool) -> int:
    return _BEST_BLOCK if is_ranked else _NEWEST_BLOCK
