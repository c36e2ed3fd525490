"""How many messages and sessions a query finds, counted while the best of them are being read."""

from bisect import bisect_left
from threading import Thread
from typing import Literal

import tantivy
from msgspec import Struct

__all__ = ["By", "Counting", "Counts", "by_session", "count"]

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


class Counting:
    """A count that goes on in a thread of its own: the engine lets others work meanwhile."""

    def __init__(self, searcher: tantivy.Searcher, wanted: tantivy.Query, by: By) -> None:
        self._work = (searcher, wanted, by)
        self._counts: Counts | None = None
        self._error: BaseException | None = None
        self._thread: Thread | None = Thread(target=self._run)
        self._thread.start()

    def result(self) -> Counts:
        """What was counted, as soon as it is. Raises what the engine raised."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._error is not None:
            raise self._error
        assert self._counts is not None
        return self._counts

    def _run(self) -> None:
        searcher, wanted, by = self._work
        try:
            if by == "message":
                self._counts = Counts(count(searcher, wanted))
            else:
                buckets = by_session(searcher, wanted)
                self._counts = Counts(len(buckets), buckets)
        except BaseException as error:  # whatever it is, whoever waits for the count is told  # noqa: BLE001
            self._error = error


def by_session(searcher: tantivy.Searcher, wanted: tantivy.Query) -> list[dict[str, int]]:
    """How many messages of each session a query finds, by the sessions' numbers."""
    terms = {"field": "session", "size": _MOST_SESSIONS, "order": {"_key": "asc"}}
    found: list[dict[str, int]] = searcher.aggregate(wanted, {"found": {"terms": terms}})["found"]["buckets"]
    return found


def count(searcher: tantivy.Searcher, wanted: tantivy.Query) -> int:
    """How many messages a query finds."""
    found = searcher.search(tantivy.Query.const_score_query(wanted, 0.0), 1, count=True)
    return getattr(found, "count", None) or 0
