"""Finding messages: the best first, each session once, everything counted.

The engine ranks by BM25 and weighs what people said above what tools put out. A
gentle preference for what is recent is applied to one block of hits after the
other: blocks are always cut at the same places, so that pages fit together.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Literal

import tantivy
from msgspec import Struct

from backscroll.index.matching import Matching
from backscroll.index.query import Query

__all__ = ["By", "Hit", "Hits", "Snapshot"]

By = Literal["session", "message"]

_FIRST_BLOCK = 500
_GROWTH = 4
_MOST_SESSIONS = 1 << 24
_RECENT_BONUS = 0.25
_HALF_LIFE_DAYS = 90.0
_DAY = 86_400_000
_KEPT_COUNTS = 4  # for the next pages of the same query


class Hit(Struct, frozen=True, gc=False):
    """A message that was found; when found for its session, with how many others of it were."""

    session: int
    position: int
    score: float
    match_count: int = 1


class Hits(Struct, frozen=True):
    """One page of what was found."""

    hits: list[Hit]
    total: int  # sessions or messages, whichever was asked for
    is_relaxed: bool = False  # no message has every word; these have the most


class Snapshot:
    """The index as it was after one commit. Pages taken from the same snapshot fit together."""

    def __init__(self, searcher: tantivy.Searcher) -> None:
        self.searcher = searcher
        self._counts: dict[Query, _Counts] = {}

    def search(
        self, matching: Matching, *, limit: int, offset: int, by: By, now: datetime | None = None
    ) -> Hits:
        """One page of the best messages, or of the sessions they are in."""
        if matching.is_empty:
            return Hits([], 0)
        today = int((now or datetime.now(UTC)).timestamp() * 1000) // _DAY
        wanted, is_relaxed = matching.strict(), False
        first = self._block(wanted, 0, _FIRST_BLOCK, matching.is_ranked)
        if not first.hits and matching.can_relax:
            is_relaxed = True
            for wanted in matching.relaxations():
                first = self._block(wanted, 0, _FIRST_BLOCK, matching.is_ranked)
                if first.hits:
                    break
        blocks = self._blocks(wanted, first, is_ranked=matching.is_ranked, today=today)
        if by == "message":
            return Hits(_page(blocks, limit=limit, offset=offset), first.count, is_relaxed)
        hits = _page(_grouped(blocks), limit=limit, offset=offset)
        counts = self._counted(matching.query, wanted, first)
        counted = [Hit(hit.session, hit.position, hit.score, counts.of(hit.session)) for hit in hits]
        return Hits(counted, len(counts.buckets), is_relaxed)

    def newest(self, wanted: tantivy.Query) -> Iterator[Hit]:
        """Every message that the engine finds, newest first, those without a time last."""
        first = self._block(wanted, 0, _FIRST_BLOCK, False)
        for block in self._blocks(wanted, first, is_ranked=False, today=0):
            yield from block

    def note(self, wanted: tantivy.Query, field: str) -> str | None:
        """What is stored with the one document that the engine finds."""
        hits = self.searcher.search(wanted, 1, count=False).hits
        value = self.searcher.doc(hits[0][1]).get_first(field) if hits else None
        return value if isinstance(value, str) else None

    def _block(self, wanted: tantivy.Query, offset: int, size: int, is_ranked: bool) -> "_Block":
        order = None if is_ranked else "at"
        result = self.searcher.search(wanted, size, offset=offset, count=offset == 0, order_by_field=order)
        addresses = [address for _, address in result.hits]
        column: Callable[[str], list[int | float | bool | None]] = lambda name: (  # noqa: E731
            self.searcher.fast_field_values(name, addresses)
        )
        rows = zip(result.hits, column("session"), column("position"), column("at"), strict=True)
        hits = [
            _Row(float(key) if is_ranked else 0.0, int(session or 0), int(position or 0), at)
            for (key, _), session, position, at in rows
        ]
        return _Block(hits, getattr(result, "count", None) or 0)

    def _blocks(
        self, wanted: tantivy.Query, first: "_Block", *, is_ranked: bool, today: int
    ) -> Iterator[list[Hit]]:
        block, offset, size = first, 0, _FIRST_BLOCK
        while block.hits:
            yield _ranked(block.hits, today) if is_ranked else [_hit(row) for row in block.hits]
            offset, size = offset + size, size * _GROWTH
            if offset >= first.count:
                return
            block = self._block(wanted, offset, size, is_ranked)

    def _counted(self, query: Query, wanted: tantivy.Query, first: "_Block") -> "_Counts":
        """How many messages of each session are found."""
        if first.count <= len(first.hits):
            found = Counter(row.session for row in first.hits)
            return _Counts([{"key": key, "doc_count": found[key]} for key in sorted(found)])
        if query not in self._counts:
            terms = {"field": "session", "size": _MOST_SESSIONS, "order": {"_key": "asc"}}
            buckets = self.searcher.aggregate(wanted, {"sessions": {"terms": terms}})["sessions"]["buckets"]
            while len(self._counts) >= _KEPT_COUNTS:
                self._counts.pop(next(iter(self._counts)))
            self._counts[query] = _Counts(buckets)
        return self._counts[query]


class _Counts(Struct, frozen=True):
    """Messages by session, as the engine gives them: sorted, and left as they are, for there are many."""

    buckets: list[dict[str, int]]

    def of(self, session: int) -> int:
        place = bisect_left(self.buckets, session, key=lambda bucket: bucket["key"])
        return self.buckets[place]["doc_count"]


class _Row(Struct, frozen=True, gc=False):
    score: float
    session: int
    position: int
    at: float | None


class _Block(Struct, frozen=True):
    hits: list[_Row]
    count: int


def _hit(row: _Row) -> Hit:
    return Hit(row.session, row.position, row.score)


def _ranked(rows: list[_Row], today: int) -> list[Hit]:
    weighed = sorted(
        ((row.score * _recency(row.at, today), row) for row in rows),
        key=lambda one: (-one[0], -(one[1].at or 0), one[1].session, one[1].position),
    )
    return [Hit(row.session, row.position, score) for score, row in weighed]


def _recency(at: float | None, today: int) -> float:
    """Up to a quarter more for what was said lately; by the day, so that pages taken today fit together."""
    if at is None:
        return 1.0
    age = max(0, today - int(at) // _DAY)
    return 1.0 + _RECENT_BONUS * math.exp2(-age / _HALF_LIFE_DAYS)


def _grouped(blocks: Iterator[list[Hit]]) -> Iterator[list[Hit]]:
    seen: set[int] = set()
    for block in blocks:
        fresh: list[Hit] = []
        for hit in block:
            if hit.session not in seen:
                seen.add(hit.session)
                fresh.append(hit)
        yield fresh


def _page(blocks: Iterator[list[Hit]], *, limit: int, offset: int) -> list[Hit]:
    page: list[Hit] = []
    passed = 0
    for block in blocks:
        page += block[max(0, offset - passed) :]
        passed += len(block)
        if len(page) >= limit:
            break
    return page[:limit]
