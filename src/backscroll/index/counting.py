"""How many messages and sessions a query finds."""

from bisect import bisect_left
from typing import Literal

import tantivy
from msgspec import Struct

__all__ = ["By", "Counts", "by_session", "count"]

By = Literal["session", "message"]

_MOST_SESSIONS = 1 << 24


class Counts(Struct, frozen=True):
    """What was counted, in all and by session; the latter as the engine gives it, for there are many."""

    total: int | None  # None when it was not counted
    buckets: list[dict[str, int]] = []  # sorted by session

    def of(self, session: int) -> int:
        """The messages of one session; 1 where these were not counted."""
        place = bisect_left(self.buckets, session, key=lambda bucket: bucket["key"])
        return self.buckets[place]["doc_count"] if place < len(self.buckets) else 1


def by_session(searcher: tantivy.Searcher, wanted: tantivy.Query) -> list[dict[str, int]]:
    """How many messages of each session a query finds, by the sessions' numbers."""
    terms = {"field": "session", "size": _MOST_SESSIONS, "order": {"_key": "asc"}}
    found: list[dict[str, int]] = searcher.aggregate(wanted, {"found": {"terms": terms}})["found"]["buckets"]
    return found


def count(searcher: tantivy.Searcher, wanted: tantivy.Query) -> int:
    """How many messages a query finds."""
    found = searcher.search(tantivy.Query.const_score_query(wanted, 0.0), 1, count=True)
    return getattr(found, "count", None) or 0
