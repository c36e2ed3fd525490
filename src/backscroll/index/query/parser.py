"""What people type into a search, as a value.

docs/reference/query-syntax.md describes the syntax. Any text whatever is a valid
query: what is not understood as syntax is searched for as words.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model import Role
from backscroll.model.dates import parse_date_range

__all__ = [
    "FILTER_NAMES",
    "Clause",
    "Filter",
    "Phrase",
    "Query",
    "SessionIds",
    "Term",
    "Word",
    "invalid_filters",
    "parse",
    "replace_filters",
]

FILTER_NAMES = (
    "role", "source", "workspace", "tool", "model", "file", "branch", "since", "until", "is", "has", "tag",
)  # fmt: skip

_FIXED = {
    "role": set(get_args(Role)),
    "is": {"error", "edit", "gone", "starred"},
    "has": {"thinking", "edits"},
}
_SINGLE = ("role", "source", "workspace", "tool", "model", "branch")  # a message has at most one of each

_ITEM = re.compile(
    r'(?P<minus>-(?=[^\s-]))?(?:(?P<name>[a-zA-Z]+):)?(?:"(?P<quoted>[^"]*)"(?P<star>\*)?|(?P<bare>\S+))'
)

_FUNCTION_WORDS = """
    a about am an and any are as at be because been being but by can could did do does doing for from had has
    have having he her here him his how i if in into is it its just me my nor not of on or our she should so
    such than that the their them then there these they this those to too until very was we were what when
    where which while who whom why will with would you your
"""
# What a question is made of. Never required beside other words: the answer need not repeat it.
_STOP_WORDS = frozenset(_FUNCTION_WORDS.split())


class Word(Struct, frozen=True, tag=True):
    """A word, or what stands together like ``path/to/file.py``."""

    text: str
    is_prefix: bool = False


class Phrase(Struct, frozen=True, tag=True):
    """Words next to each other."""

    text: str
    is_prefix: bool = False


class Filter(Struct, frozen=True, tag=True):
    """A fact about a message. A value may have ``*`` in it, except for files, which are found by any part."""

    name: str
    value: str


class SessionIds(Struct, frozen=True, tag=True):
    """Being in one of these sessions, or in none of them: what only the archive can tell of a session."""

    numbers: frozenset[int]
    is_negated: bool = False


Term = Word | Phrase | Filter | SessionIds


class Clause(Struct, frozen=True):
    """One or another of these, or none of them."""

    any_of: tuple[Term, ...]
    is_negated: bool = False

    @property
    def is_filter(self) -> bool:
        return all(isinstance(term, Filter | SessionIds) for term in self.any_of)

    @property
    def is_stop_word(self) -> bool:
        return all(
            isinstance(term, Word) and not term.is_prefix and _bare(term.text) in _STOP_WORDS
            for term in self.any_of
        )


class Query(Struct, frozen=True):
    """Every clause holds, and the time lies in between."""

    clauses: tuple[Clause, ...] = ()
    since: int | None = None  # milliseconds since 1970
    until: int | None = None  # the first moment that is too late

    @property
    def is_empty(self) -> bool:
        """Whether nothing was asked for; such a query finds nothing."""
        return not self.clauses and self.since is None and self.until is None

    @property
    def words(self) -> tuple[Clause, ...]:
        """What is looked for in the text."""
        return tuple(clause for clause in self.clauses if not clause.is_filter and not clause.is_negated)

    def with_filters(
        self, *filters: Filter, since: datetime | None = None, until: datetime | None = None
    ) -> "Query":
        """The same with more conditions."""
        added = tuple(Clause((one,)) for one in filters)
        return replace(
            self,
            clauses=(*self.clauses, *added),
            since=_latest(self.since, _milliseconds(since)),
            until=_earliest(self.until, _milliseconds(until)),
        )


def replace_filters(query: Query, look_up: Callable[[Filter], Sequence[Term] | None]) -> Query:
    """The same query with each filter replaced by the terms that ``look_up`` gives for it, if it does."""

    def terms(term: Term) -> Sequence[Term]:
        found = look_up(term) if isinstance(term, Filter) else None
        return (term,) if found is None else found

    clauses = (
        Clause(tuple(new for term in clause.any_of for new in terms(term)), is_negated=clause.is_negated)
        for clause in query.clauses
    )
    return replace(query, clauses=tuple(clauses))


def parse(text: str, *, now: datetime | None = None, has_other_filters: bool = False) -> Query:
    """Understand a query; never fails. Dates are meant in the zone of ``now``, by default this machine's.

    A query of nothing but words to exclude looks for them, unless it is to be narrowed by more conditions.
    """
    zone = now.tzinfo if now is not None else None
    now = now if now is not None else datetime.now(UTC)
    query = Query()
    clauses: list[Clause] = []
    is_or = False
    for item in _items(text):
        if item["bare"] == "OR" and not item["minus"] and not item["name"]:
            is_or = bool(clauses)
            continue
        if (bounded := _bounded(query, item, now, zone)) is not None:
            query = bounded
            continue
        term = _term(item)
        if term is None:
            continue
        clause = Clause((term,), is_negated=bool(item["minus"]))
        if is_or and not clause.is_negated and not clauses[-1].is_negated:
            clauses[-1] = Clause((*clauses[-1].any_of, term))
        else:
            clauses.append(clause)
        is_or = False
    has_other_filters = has_other_filters or query.since is not None or query.until is not None
    query = replace(query, clauses=tuple(_settled(clauses, has_other_filters)))
    if query.is_empty and any(map(str.isalnum, text)):
        return Query((Clause((Word(text.strip()),)),))
    return query


def invalid_filters(text: str) -> list[str]:
    """What in a query begins as a filter does and is none, since it has a value that cannot be."""
    now = datetime.now(UTC)
    found: list[str] = []
    for item in _items(text):
        name, value = (item["name"] or "").lower(), item["quoted"] or item["bare"] or ""
        is_date = name in ("since", "until") and parse_date_range(value, now) is not None
        if name and not is_date and _filter(name, value) is None:
            found.append(f"{name}:{value}")
    return found


def _items(text: str) -> Iterator[dict[str, str | None]]:
    for found in _ITEM.finditer(text):
        item = found.groupdict()
        if item["name"] is not None and item["name"].lower() not in FILTER_NAMES:
            yield {"minus": item["minus"], "name": None, "quoted": None, "star": None,
                   "bare": found[0].removeprefix("-") if item["minus"] else found[0]}  # fmt: skip
            continue
        yield item


def _bounded(query: Query, item: dict[str, str | None], now: datetime, zone: tzinfo | None) -> Query | None:
    """The query with a limit of time, when the item is one."""
    name = (item["name"] or "").lower()
    if name not in ("since", "until"):
        return None
    span = parse_date_range(item["quoted"] or item["bare"] or "", now, zone)
    if span is None:
        return None
    begin, end = (_milliseconds(moment) for moment in span)
    if (name == "since") is not bool(item["minus"]):
        return replace(query, since=_latest(query.since, end if item["minus"] else begin))
    return replace(query, until=_earliest(query.until, begin if item["minus"] else end))


def _term(item: dict[str, str | None]) -> Term | None:
    name, quoted, bare = (item["name"] or "").lower(), item["quoted"], item["bare"]
    value = quoted if quoted is not None else (bare or "")
    if name:
        known = _filter(name, value)
        if known is not None:
            return known
        value = f"{name} {value}"
    if not any(map(str.isalnum, value)):
        return None
    if quoted is not None or name:
        return Phrase(value, is_prefix=bool(item["star"]))
    return Word(value.rstrip("*"), is_prefix=value.endswith("*") and value.rstrip("*")[-1:].isalnum())


def _filter(name: str, value: str) -> Filter | None:
    """A filter that can be one: fixed values are checked, others only need to be there."""
    value = value.strip()
    allowed = _FIXED.get(name)
    if allowed is not None:
        value = value.lower()
    if not value.strip("*") or (allowed is not None and value not in allowed) or name in ("since", "until"):
        return None
    return Filter(name, value)


def _settled(clauses: list[Clause], has_other_filters: bool) -> Iterator[Clause]:
    """Filters that exclude each other joined; words that would be all there is to exclude looked for."""
    groups: dict[str, list[Term]] = {}
    has_positive = has_other_filters or any(not clause.is_negated for clause in clauses)
    for clause in clauses:
        names = {term.name if isinstance(term, Filter) else "" for term in clause.any_of}
        name = names.pop()
        if not clause.is_negated and not names and name in _SINGLE:
            groups.setdefault(name, []).extend(clause.any_of)
        elif clause.is_negated and not has_positive and not clause.is_filter:
            yield Clause(clause.any_of)
        else:
            yield clause
    for terms in groups.values():
        yield Clause(tuple(dict.fromkeys(terms)))


def _bare(word: str) -> str:
    return word.strip("?!.,;:'\"()").lower()


def _milliseconds(moment: datetime | None) -> int | None:
    return int(moment.timestamp() * 1000) if moment is not None else None


def _latest(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _earliest(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)
