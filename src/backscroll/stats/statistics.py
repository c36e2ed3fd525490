"""Counts, tokens and costs."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, timedelta, tzinfo
from functools import cache, cached_property
from importlib.resources import files
from itertools import pairwise

from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.query.statistics import ActivityTotals, GroupTotals
from backscroll.archive.query.statistics import Statistics as Counted
from backscroll.archive.session_key import SessionKey
from backscroll.errors import UsageError
from backscroll.model.dates import midnight
from backscroll.model.session import Filter
from backscroll.model.statistics import (
    Breakdown,
    By,
    Explanation,
    Favorite,
    LongestSession,
    MostEdited,
    Report,
    SeriesGroup,
    Streak,
    Sums,
    Year,
)
from backscroll.pricing.prices import PriceTable, with_own
from backscroll.stats.totals import add_up, add_up_series, bucket_start, explain, messages_by_hour, zone_name
from backscroll.stores.lookup import check_choice, find_session
from backscroll.stores.stores import Stores

_WORD = re.compile(r"[^\W\d_][\w'-]*[^\W_]")
MIN_TOPIC_SESSIONS = 2  # with the same word
MAX_RANKED = 10


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


def review(
    archive: Archive, filter: Filter, year: int, prices: PriceTable, *, zone: tzinfo | None = None
) -> Year:
    """Return the statistics of a year, in days of the zone or of this machine."""
    since, until = midnight(date(year, 1, 1), zone), midnight(date(year + 1, 1, 1), zone)
    counted = archive.statistics(replace(filter, since=since, until=until))
    by_month = add_up(counted, prices, by="month", zone=zone, since=since, until=until)
    by_place = add_up(counted, prices, by="workspace", zone=zone, since=since, until=until)
    done = [one for one in counted.activity() if one.messages or one.subagent_messages]
    days: Counter[date] = Counter()
    hours, weekdays = [0] * 24, [0] * 7
    for one in done:
        at = bucket_start(one.bucket or 0, zone)
        days[at.date()] += one.messages
        hours[at.hour] += one.messages
        weekdays[at.weekday()] += one.messages
    active = sorted(day for day, messages in days.items() if messages)
    known = {row.key: row for row in by_month.rows}
    busiest = max(active, key=lambda day: (days[day], day), default=None)
    names = [f"{year}-{month:02}" for month in range(1, 13)]
    return Year(
        year=year,
        zone=zone_name(zone),
        total=by_month.total,
        months=tuple(known.get(name, Sums(key=name)) for name in names),
        hours=tuple(hours),
        weekdays=tuple(weekdays),
        active_days=len(active),
        busiest_day=(busiest, days[busiest]) if busiest is not None else None,
        streak=_longest_streak(active),
        longest_session=_longest_session(counted, done),
        projects=_busiest(by_place.rows),
        files=tuple(MostEdited(*one) for one in counted.edited_files(MAX_RANKED)),
        tools=_favorites(counted.by_tool(), by_calls=True),
        models=_favorites(counted.by_model(), by_calls=False),
        topics=_topics(counted, {one.session_id for one in done}),
        prices_checked=prices.checked,
        uncounted_sessions=by_month.uncounted_sessions,
    )


def _longest_streak(days: Sequence[date]) -> Streak | None:
    """Return the longest run of consecutive days, the latest of several. The days are sorted."""
    best: Streak | None = None
    first: date | None = None
    for place, day in enumerate(days):
        if first is None or days[place - 1] + timedelta(days=1) != day:
            first = day
        length = (day - first).days + 1
        if best is None or length >= best.days:
            best = Streak(first, day, length)
    return best


def _longest_session(counted: Counted, done: Iterable[ActivityTotals]) -> LongestSession | None:
    active: Counter[int] = Counter()
    messages: Counter[int] = Counter()
    for one in done:
        active[one.session_id] += one.active_ms
        messages[one.session_id] += one.messages
    if not active:
        return None
    id_ = max(active, key=lambda id_: (active[id_], messages[id_], -id_))
    session = counted.sessions[id_]
    return LongestSession(
        session.ref, session.title, session.workspace_path, active[id_] / 1000, messages[id_]
    )


def _busiest(rows: Iterable[Sums]) -> tuple[Sums, ...]:
    """Return the workspaces with the most messages."""
    named = [row for row in rows if row.key is not None and row.messages]
    return tuple(sorted(named, key=lambda row: (-(row.messages or 0), row.key or ""))[:MAX_RANKED])


def _favorites(parts: Iterable[GroupTotals], *, by_calls: bool) -> tuple[Favorite, ...]:
    counts: Counter[str] = Counter()
    for part in parts:
        if part.name is not None:
            counts[part.name] += part.calls if by_calls else part.messages
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Favorite(name, count) for name, count in ranked[:MAX_RANKED] if count)


def _topics(counted: Counted, ids: Iterable[int]) -> tuple[Favorite, ...]:
    texts = []
    for id_ in ids:
        session = counted.sessions[id_]
        texts.append("\n".join(dict.fromkeys(filter(None, (session.title, session.preview)))))
    return tuple(Favorite(*topic) for topic in topics_of(texts, 2 * MAX_RANKED))


def topics_of(texts: Iterable[str], limit: int) -> list[tuple[str, int]]:
    """Return the most frequent words and word pairs, each counted once per text.

    A word that occurs almost only in a returned pair is left out.
    """
    words: Counter[str] = Counter()
    pairs: Counter[str] = Counter()
    stop_words = _stop_words()
    for text in texts:
        # A stop word separates the words around it: they are not a pair.
        tokens = [
            word if len(word) > 2 and word not in stop_words else "" for word in _WORD.findall(text.lower())
        ]
        words.update({word for word in tokens if word})
        pairs.update({f"{one} {other}" for one, other in pairwise(tokens) if one and other and one != other})
    ranked = sorted((words + pairs).items(), key=lambda item: (-item[1], " " not in item[0], item[0]))
    topics: list[tuple[str, int]] = []
    within: Counter[str] = Counter()
    for topic, count in ranked:
        if len(topics) == limit or count < MIN_TOPIC_SESSIONS:
            break
        parts = topic.split()
        if len(parts) == 1 and within[topic] * 5 >= count * 4:
            continue
        if len(parts) == 2 and any(part in dict(topics) and count * 2 < words[part] for part in parts):
            continue
        topics.append((topic, count))
        for part in parts if len(parts) == 2 else ():
            within[part] = max(within[part], count)
    return topics


@cache
def _stop_words() -> frozenset[str]:
    """Return the stop words: function words, and words of every request."""
    return frozenset(files("backscroll.stats").joinpath("stop_words.txt").read_text("utf-8").split())
