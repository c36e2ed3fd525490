"""How many messages and sessions a query finds."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec
import tantivy
from msgspec import Struct

from backscroll.index.engine.schema import METADATA_TAG, schema

__all__ = ["By", "Counts", "count_by_session", "count_known", "count_messages", "reckoned_with"]

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


def count_by_session(searcher: tantivy.Searcher, wanted: tantivy.Query) -> list[dict[str, int]]:
    """How many messages of each session a query finds, by the sessions' numbers."""
    terms = {"field": "session", "size": _MOST_SESSIONS, "order": {"_key": "asc"}}
    found: list[dict[str, int]] = searcher.aggregate(wanted, {"found": {"terms": terms}})["found"]["buckets"]
    return found


def count_messages(searcher: tantivy.Searcher, wanted: tantivy.Query) -> int:
    """How many messages a query finds."""
    found = searcher.search(tantivy.Query.const_score_query(wanted, 0.0), 1, count=True)
    return getattr(found, "count", None) or 0


def count_known(sessions: Iterable[int]) -> Counts:
    """The counts of messages that are all known, by the session of each."""
    numbers = sorted(Counter(sessions).items())
    return Counts(len(numbers), [{"key": session, "doc_count": number} for session, number in numbers])


class _Explanation(Struct):
    value: float
    description: str
    details: list["_Explanation"] = []


def reckoned_with(searcher: tantivy.Searcher) -> int | None:
    """The number of documents by which the engine says how rare a word is: forgotten ones count, too.

    None when it does not tell.
    """
    noted = tantivy.Query.term_query(schema(), "tags", METADATA_TAG)
    hits = searcher.search(noted, 1, count=False).hits
    told = [
        msgspec.json.decode(noted.explain(searcher, address).to_json(), type=_Explanation)
        for _, address in hits
    ]
    for one in told:
        if one.description.startswith("N,"):
            return int(one.value)
        told += one.details
    return None
