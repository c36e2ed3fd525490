"""A year in one page."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, timedelta, tzinfo

from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.archive.query.statistics import ActivityTotals, GroupTotals, Statistics
from backscroll.model import Filter
from backscroll.model.statistics import Favourite, LongestSession, MostEdited, Streak, Sums, Year
from backscroll.pricing.prices import PriceTable
from backscroll.stats.calendar import local, midnight, zone_name
from backscroll.stats.topics import topics_of
from backscroll.stats.totals import add_up

__all__ = ["review"]

_MANY = 10  # of what is ranked


def review(
    archive: Archive, wanted: Filter, year: int, prices: PriceTable, *, zone: tzinfo | None = None
) -> Year:
    """What happened within a year, in days of the zone or of this machine."""
    since, until = midnight(date(year, 1, 1), zone), midnight(date(year + 1, 1, 1), zone)
    counted = archive.sessions.statistics(replace(wanted, since=since, until=until))
    by_month = add_up(counted, prices, by="month", zone=zone, since=since, until=until)
    by_place = add_up(counted, prices, by="workspace", zone=zone, since=since, until=until)
    done = [one for one in counted.activity() if one.messages or one.subagent_messages]
    days: Counter[date] = Counter()
    hours, weekdays = [0] * 24, [0] * 7
    for one in done:
        at = local(one.bucket or 0, zone)
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
        files=tuple(MostEdited(*one) for one in counted.edited_files(_MANY)),
        tools=_favourites(counted.by_tool(), by_calls=True),
        models=_favourites(counted.by_model(), by_calls=False),
        topics=_topics(counted, {one.session_id for one in done}),
        prices_checked=prices.checked,
    )


def _longest_streak(days: Sequence[date]) -> Streak | None:
    """The longest run of days, the latest of several; the days are in order."""
    best: Streak | None = None
    first: date | None = None
    for place, day in enumerate(days):
        if first is None or days[place - 1] + timedelta(days=1) != day:
            first = day
        length = (day - first).days + 1
        if best is None or length >= best.days:
            best = Streak(first, day, length)
    return best


def _longest_session(counted: Statistics, done: Iterable[ActivityTotals]) -> LongestSession | None:
    active: Counter[int] = Counter()
    messages: Counter[int] = Counter()
    for one in done:
        active[one.session_id] += one.active_ms
        messages[one.session_id] += one.messages
    if not active:
        return None
    number = max(active, key=lambda number: (active[number], messages[number], -number))
    session = counted.sessions[number]
    return LongestSession(
        session.ref, session.title, session.workspace_path, active[number] / 1000, messages[number]
    )


def _busiest(rows: Iterable[Sums]) -> tuple[Sums, ...]:
    """The workspaces with most messages; what belongs to none is no project."""
    named = [row for row in rows if row.key is not None and row.messages]
    return tuple(sorted(named, key=lambda row: (-(row.messages or 0), row.key or ""))[:_MANY])


def _favourites(parts: Iterable[GroupTotals], *, by_calls: bool) -> tuple[Favourite, ...]:
    counts: Counter[str] = Counter()
    for part in parts:
        if part.name is not None:
            counts[part.name] += part.calls if by_calls else part.messages
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Favourite(name, count) for name, count in ranked[:_MANY] if count)


def _topics(counted: Statistics, numbers: Iterable[int]) -> tuple[Favourite, ...]:
    texts = []
    for number in numbers:
        session = counted.sessions[number]
        texts.append("\n".join(dict.fromkeys(filter(None, (session.title, session.preview)))))
    return tuple(Favourite(*topic) for topic in topics_of(texts, 2 * _MANY))
