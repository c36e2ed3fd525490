"""Results of a search in the index: a page of hits, and one whose counts are still computed."""

from msgspec import Struct
from msgspec.structs import replace

from backscroll.index.engine.background import BackgroundTask
from backscroll.index.query.counts import Counts
from backscroll.index.query.ranking import Hit

__all__ = ["HitPage", "PendingSearch"]


class HitPage(Struct, frozen=True):
    """One page of hits."""

    hits: list[Hit]
    total: int | None  # sessions or messages with every word; None if not counted
    row_count: int | None  # on all pages; None if not counted
    is_relaxed: bool = False  # no message has every word
    with_inflections: bool = False  # words match in other forms too


class PendingSearch:
    """A page of hits for which counting may still run in the background."""

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
        """Wait for the counts and return the page with them."""
        counts = self._counts.result() if isinstance(self._counts, BackgroundTask) else self._counts
        complete = counts.complete_sessions
        hits = [
            replace(
                hit,
                match_count=counts.of(hit.session),
                matches_all=not self.is_relaxed if complete is None else hit.session in complete,
            )
            for hit in self.hits
        ]
        return HitPage(
            hits,
            counts.total,
            counts.total if counts.row_count is None else counts.row_count,
            is_relaxed=self.is_relaxed,
            with_inflections=self.with_inflections,
        )
