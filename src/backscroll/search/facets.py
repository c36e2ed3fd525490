"""Counts of matching messages by source, workspace, role, kind, model and date. Dates are local ones."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import get_args

from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.archive.query.sessions import SessionProperties
from backscroll.archive.query.workspaces import find_workspaces
from backscroll.index.counts import FacetCounter
from backscroll.index.pattern import Pattern
from backscroll.index.query import Clause, Filter, Query
from backscroll.index.store import Index
from backscroll.model.dates import midnight
from backscroll.model.message import Role
from backscroll.model.search import SearchFacets
from backscroll.model.session import FacetValue
from backscroll.search.filters import exclude_sessions
from backscroll.search.pattern_search import PatternCounter

MAX_MODELS = 12  # each is one more query
MAX_WORKSPACES = 50
MAX_DATES = 40
_KINDS = ("edit", "error")
_Counter = FacetCounter | PatternCounter
_WILDCARD = re.compile(r"[*/\\]")  # in a name, it means something else
_PERIODS: tuple[tuple[str, Callable[[date], date]], ...] = (  # format, and the start of the next period
    ("%Y-%m-%d", lambda day: day + timedelta(days=1)),
    ("%Y-%m", lambda day: (day.replace(day=1) + timedelta(days=32)).replace(day=1)),
    ("%Y", lambda day: date(day.year + 1, 1, 1)),
)


def count_word_facets(archive: Archive, index: Index, query: Query) -> SearchFacets:
    """Return the counts of the messages with every word. The filters of the query are resolved."""
    query = exclude_sessions(archive, index, query)
    with index.facet_counter() as counter:
        return _count_facets(archive, counter, query)


def count_pattern_facets(archive: Archive, index: Index, pattern: Pattern, query: Query) -> SearchFacets:
    """Return the counts of the messages that match a pattern and pass the resolved filters of the query."""
    counter = PatternCounter(archive, index, pattern)
    facets = _count_facets(archive, counter, query)
    return replace(facets, is_partial=counter.is_partial)


def _count_facets(archive: Archive, counter: _Counter, query: Query) -> SearchFacets:
    sessions = counter.by_session(query)
    sums = _Sums(archive, sessions)

    def without(name: str) -> _Sums:
        others = _without_filter(query, name)
        return sums if others == query else _Sums(archive, counter.by_session(others))

    models = [name for name, _ in without("model").models.most_common(MAX_MODELS)]
    return SearchFacets(
        total=sum(sessions.values()),
        sources=_ranked((source, source, count) for source, count in without("source").sources.items()),
        workspaces=_workspaces(archive, without("workspace").workspaces),
        roles=_filtered(counter, _without_filter(query, "role"), "role", get_args(Role)),
        kinds=_filtered(counter, query, "is", _KINDS),
        models=_filtered(counter, _without_filter(query, "model"), "model", models),
        dates=tuple(_dates(counter, replace(query, since=None, until=None))),
    )


class _Sums:
    """Messages by the properties of their sessions."""

    def __init__(self, archive: Archive, sessions: Mapping[int, int]) -> None:
        self.sources: Counter[str] = Counter()
        self.workspaces: Counter[str] = Counter()  # by workspace hash
        self.models: Counter[str] = Counter()  # a session can have several
        by_properties: Counter[SessionProperties] = Counter()
        known = archive.facets.properties(sessions)
        for id_, count in sessions.items():
            if (properties := known.get(id_)) is not None:
                by_properties[properties] += count
        for properties, count in by_properties.items():
            self.sources[properties.source] += count
            self.workspaces[properties.workspace_hash or ""] += count
            self.models.update(dict.fromkeys(properties.models, count))


def _without_filter(query: Query, name: str) -> Query:
    """Return the query without the filters of one name. Excluded values stay excluded."""

    def is_other(clause: Clause) -> bool:
        return clause.is_negated or not all(
            isinstance(term, Filter) and term.name == name for term in clause.any_of
        )

    return replace(query, clauses=tuple(filter(is_other, query.clauses)))


def _filtered(counter: _Counter, query: Query, name: str, values: Iterable[str]) -> tuple[FacetValue, ...]:
    return _ranked((value, value, counter.with_filter(query, Filter(name, value))) for value in values)


def _workspaces(archive: Archive, counts: Counter[str]) -> tuple[FacetValue, ...]:
    """Return the most frequent workspaces, each with the shortest value of a filter that means it."""
    known = archive.sessions.known_workspaces()
    by_hash = {workspace.hash: workspace for workspace in known}
    names = Counter(workspace.name.casefold() for workspace in known)
    found: dict[str, tuple[str, str, int]] = {}
    for hash_, count in counts.most_common(MAX_WORKSPACES):
        workspace = by_hash.get(hash_)
        if workspace is None:
            continue
        value = label = workspace.name
        if not value or names[value.casefold()] > 1 or _WILDCARD.search(value):
            value = workspace.label
            place = workspace.host or workspace.path.removesuffix(workspace.name).rstrip("/\\")
            label = f"{workspace.name} ({place})" if workspace.name and place else workspace.label
            hashes = find_workspaces(known, value, is_strict=False)
            count = sum(counts[one] for one in hashes)  # a path can be on several hosts
        found[value] = (value, label, count)
    return _ranked(found.values())


def _ranked(values: Iterable[tuple[str, str, int]]) -> tuple[FacetValue, ...]:
    """Return the values with messages, the most frequent first."""
    known = [FacetValue(*value) for value in values if value[2]]
    return tuple(sorted(known, key=lambda value: (-value.count, value.value)))


def _dates(counter: _Counter, query: Query) -> Iterator[FacetValue]:
    """Yield days, months or years from the first message to the last one: the shortest of at most 40."""
    times = counter.time_range(query)
    if times is None:
        return
    first, last = (datetime.fromtimestamp(at / 1000, UTC).astimezone().date() for at in times)
    for pattern, next_start in _PERIODS:
        starts = [date.fromisoformat(f"{first.strftime(pattern)}-01-01"[:10])]
        while starts[-1] <= last and len(starts) <= MAX_DATES:
            starts.append(next_start(starts[-1]))
        if starts[-1] > last:
            break
    counts = counter.by_time(query, [int(midnight(start).timestamp() * 1000) for start in starts])
    for start, count in zip(starts, counts, strict=False):
        name = start.strftime(pattern)
        yield FacetValue(name, name, count)
