"""What sessions add up to: counts, tokens, costs, a year in review."""

from datetime import date, timedelta, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING

from backscroll.errors import UsageError
from backscroll.history.sessions import Sessions

if TYPE_CHECKING:
    from backscroll.model import Filter
    from backscroll.model.statistics import By, Explanation, Report, Year
    from backscroll.pricing.prices import PriceTable

__all__ = ["Counting"]


class Counting(Sessions):
    """What sessions add up to: counts, tokens, costs, a year in review."""

    @cached_property
    def prices(self) -> "PriceTable":
        """The price table, with what the settings' own file says in the place of its entries.

        Raises `UsageError` when that file cannot be understood.
        """
        from backscroll.pricing.prices import with_own

        return with_own(self.settings.prices)

    def stats(
        self, wanted: "Filter | None" = None, *, by: "By | None" = None, zone: tzinfo | None = None
    ) -> "Report":
        """The figures of sessions; with ``since`` or ``until``, of what happened within.

        Days are those of ``zone``, or of this machine. Every response counts once, where it was first made.
        """
        from backscroll.model import Filter
        from backscroll.stats.totals import add_up

        wanted = wanted or Filter()
        counted = self._archive.sessions.statistics(wanted)
        return add_up(counted, self.prices, by=by, zone=zone, since=wanted.since, until=wanted.until)

    def explain_session(self, ref: str, *, zone: tzinfo | None = None) -> "Explanation":
        """Every usage record of a session, counted or not and why, and the arithmetic of its cost."""
        from backscroll.archive.session_key import SessionKey
        from backscroll.model import Filter
        from backscroll.stats.explain import explain

        summary = self.find(ref)
        if summary.parent_ref is not None:
            raise UsageError(f"{summary.ref} is a subagent and counts in its session: {summary.parent_ref}")
        only = SessionKey(summary.platform, summary.id)
        counted = self._archive.sessions.statistics(Filter(with_unlisted=True), only)
        return explain(counted, self.prices, summary.ref, zone=zone)

    def explain_day(
        self, day: date, wanted: "Filter | None" = None, *, zone: tzinfo | None = None
    ) -> "Explanation":
        """The same of a day of the zone, or of this machine, over the sessions that pass."""
        from msgspec.structs import replace

        from backscroll.model import Filter
        from backscroll.stats.calendar import midnight
        from backscroll.stats.explain import explain

        since, until = (midnight(one, zone) for one in (day, day + timedelta(days=1)))
        counted = self._archive.sessions.statistics(replace(wanted or Filter(), since=since, until=until))
        return explain(counted, self.prices, day.isoformat(), zone=zone)

    def year_in_review(
        self, year: int, wanted: "Filter | None" = None, *, zone: tzinfo | None = None
    ) -> "Year":
        """A year in one page: months, hours, topics, projects, the longest session, streaks, favourites."""
        from backscroll.model import Filter
        from backscroll.stats.year_review import review

        return review(self._archive, wanted or Filter(), year, self.prices, zone=zone)
