"""Number of messages and sessions that match a query."""

from bisect import bisect_left
from typing import Literal

import tantivy
from msgspec import Struct

__all__ = ["By", "Counts", "count_by_session", "count_messages"]

By = Literal["session", "message"]

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
