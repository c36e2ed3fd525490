"""Counts, tokens and costs."""

from collections.abc import Sequence
from datetime import date, timedelta, tzinfo
from functools import cached_property

from msgspec.structs import replace

from backscroll.archive.query.statistics import Statistics as Counted
from backscroll.archive.session_key import SessionKey
from backscroll.errors import UsageError
from backscroll.model.dates import midnight
from backscroll.model.session import Filter
from backscroll.model.statistics import Breakdown, By, Explanation, MostEdited, Report, SeriesGroup, Year
from backscroll.pricing.prices import PriceTable, with_own
from backscroll.stats.totals import add_up, add_up_series, explain, messages_by_hour
from backscroll.stats.year_review import review
from backscroll.stores.arguments import check_choice
from backscroll.stores.lookup import find_session
from backscroll.stores.stores import Stores


class Statistics:
    """Counts, tokens and costs. Days are those of ``zone``, or of this machine."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @cached_property
    def prices(self) -> PriceTable:
        """The price table, with the entries of the user's file from the settings.

        Raises `UsageError` if that file is invalid.
        """
        return with_own(self._stores.settings.prices)

    def report(
        self, filter: Filter | None = None, *, by: By | None = None, zone: tzinfo | None = None
    ) -> Report:
        """Return the figures of sessions; with ``since`` or ``until``, of the activity in that time.

        Every response counts once, in the session that first produced it.
        """
        if by is not None:
            check_choice("grouping", by, By)
        filter = filter or Filter()
        counted = self._stores.archive.statistics(filter)
        return add_up(counted, self.prices, by=by, zone=zone, since=filter.since, until=filter.until)

    def reports(
        self, filter: Filter | None = None, *, by: Sequence[By], zone: tzinfo | None = None
    ) -> dict[By, Report]:
        """Return several reports of the same sessions. This is faster than one after the other."""
        filter = filter or Filter()
        counted = self._stores.archive.statistics(filter)
        counted.keep_rows()
        return self._reports(counted, filter, by, zone)

    def _reports(
        self, counted: Counted, filter: Filter, by: Sequence[By], zone: tzinfo | None
    ) -> dict[By, Report]:
        return {
            one: add_up(counted, self.prices, by=one, zone=zone, since=filter.since, until=filter.until)
            for one in by
        }

    def breakdown(
        self,
        filter: Filter | None = None,
        *,
        period: By,
        by: Sequence[By],
        stacked_by: Sequence[SeriesGroup] = (),
        max_groups: int = 5,
        max_files: int = 0,
        zone: tzinfo | None = None,
    ) -> Breakdown:
        """Return reports, hours and files of the same sessions.

        ``stacked_by`` adds sums by period and group, with the largest groups by name.
        """
        filter = filter or Filter()
        counted = self._stores.archive.statistics(filter)
        counted.keep_rows()
        return Breakdown(
            reports=self._reports(counted, filter, (period, *by), zone),
            series={
                one: add_up_series(
                    counted, self.prices, period=period, by=one, max_groups=max_groups, zone=zone
                )
                for one in stacked_by
            },
            hours=messages_by_hour(counted, zone),
            files=tuple(MostEdited(*file) for file in counted.edited_files(max_files)) if max_files else (),
        )

    def messages_by_hour(
        self, filter: Filter | None = None, *, zone: tzinfo | None = None
    ) -> tuple[tuple[int, ...], ...]:
        """Return the messages of each hour of the day, for the days of the week from Monday."""
        return messages_by_hour(self._stores.archive.statistics(filter or Filter()), zone)

    def explain_session(self, ref: str, *, zone: tzinfo | None = None) -> Explanation:
        """Return every usage record of a session, whether it counts and why, and the cost calculation."""
        summary = find_session(self._stores.archive, ref)
        if summary.parent_ref is not None:
            raise UsageError(f"{summary.ref} is a subagent. Explain its session: {summary.parent_ref}")
        only = SessionKey(summary.platform, summary.id)
        counted = self._stores.archive.statistics(Filter(with_unlisted=True), only)
        return explain(counted, self.prices, summary.ref, zone=zone)

    def explain_day(
        self, day: date, filter: Filter | None = None, *, zone: tzinfo | None = None
    ) -> Explanation:
        """Return the usage records of one day over the matching sessions."""
        since, until = midnight(day, zone), midnight(day + timedelta(days=1), zone)
        counted = self._stores.archive.statistics(replace(filter or Filter(), since=since, until=until))
        return explain(counted, self.prices, day.isoformat(), zone=zone)

    def year_in_review(self, year: int, filter: Filter | None = None, *, zone: tzinfo | None = None) -> Year:
        """Return a year in numbers: months, hours, topics, projects, longest session, streaks."""
        return review(self._stores.archive, filter or Filter(), year, self.prices, zone=zone)
