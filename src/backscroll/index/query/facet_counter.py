"""Number of messages that match a query, by session, attribute and time."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import tantivy

from backscroll.index.query.compile import CompiledQuery, compile_filter
from backscroll.index.query.counts import count_by_session, count_messages
from backscroll.index.query.elements import all_of
from backscroll.index.query.parser import Filter, Query

__all__ = ["FacetCounter"]


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
