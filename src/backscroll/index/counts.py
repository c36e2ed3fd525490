"""Number of messages that match a query, by session, attribute and time."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import tantivy
from msgspec import Struct

from backscroll.index.compile import CompiledQuery, all_of, compile_filter
from backscroll.index.query import Filter, Query

_MAX_SESSIONS = 1 << 24


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

    def with_filter(self, query: Query, filter_: Filter) -> int:
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
