"""Query syntax, parsed into a value.

docs/reference/query-syntax.md describes the syntax. Any text is a valid query: whatever is not valid syntax
is searched for as words.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from backscroll.filters import FILTERS
from backscroll.index.languages import ENGLISH, detect_language, is_stop_word
from backscroll.model.dates import parse_date_range
from backscroll.model.message import Role
from backscroll.model.search import FilterItem, InvalidFilter

_INDEXED = ("role", "source", "workspace", "tool", "model", "file", "branch", "since", "until")
# Filters that the archive evaluates, in the query syntax: its name, or a flag such as "is:gone".
SESSION_FILTERS = {each.query: each for each in FILTERS if each.query not in _INDEXED}
FILTER_NAMES = (*_INDEXED, "is", "has", *(query for query in SESSION_FILTERS if ":" not in query))


def _flags(prefix: str) -> tuple[str, ...]:
    return tuple(query.removeprefix(prefix) for query in SESSION_FILTERS if query.startswith(prefix))


_ALLOWED_VALUES: dict[str, tuple[str, ...]] = {
    "role": get_args(Role),
    "is": ("error", "edit", *_flags("is:")),
    "has": ("thinking", *_flags("has:")),
}
_MIN_NAME_CHARS = 4  # of a misspelt filter; shorter names are similar to many words
_MIN_NAME_SIMILARITY = 0.75
_OPERATORS = ("AND", "OR", "NOT")
_SINGLE_VALUED = ("role", "source", "workspace", "tool", "model", "branch")  # at most one per message
_ITEM = re.compile(
    r'(?P<minus>-(?=[^\s-]))?(?:(?P<name>[a-zA-Z]+):)?(?:"(?P<quoted>[^"]*)"(?P<star>\*)?|(?P<bare>\S+))'
)
# Everyday words that say little about the subject of a query.
_COMMON_WORD_LIST = """
after again against all already also another anything back become been before between both came come day
done down during each every everything few first gave get give given go goes gone good got happen happened
kept keep know last let like long look made make many may might more most much must need new no off old
once one only other out over own please put really said same say see shall some something still take taken
tell thing think through time told took two under up use used using want way went work works
"""
_COMMON_WORDS = frozenset(_COMMON_WORD_LIST.split())


class Word(Struct, frozen=True, tag=True):
    """A word, or several joined by punctuation like ``path/to/file.py``."""

    text: str
    is_prefix: bool = False


class Phrase(Struct, frozen=True, tag=True):
    """Adjacent words."""

    text: str
    is_prefix: bool = False


class MessageFilter(Struct, frozen=True, tag=True):
    """A filter by an attribute of messages, such as ``role:user``.

    The value may contain ``*``, except for files, which match by any part.
    """

    name: str
    value: str


class SessionIds(Struct, frozen=True, tag=True):
    """Restriction to these sessions, or to all others: the result of a filter that the archive resolves."""

    ids: frozenset[int]
    is_negated: bool = False


PlainTerm = Word | Phrase | MessageFilter | SessionIds


class Not(Struct, frozen=True, tag=True):
    """A negated alternative, as in ``a OR NOT b``. Matches if none of the terms does."""

    any_of: tuple[PlainTerm, ...]

    @property
    def is_filter(self) -> bool:
        """Whether no text is negated."""
        return _has_no_text(self.any_of)


Term = PlainTerm | Not


class Clause(Struct, frozen=True):
    """Alternatives of which at least one must match, or none if negated."""

    any_of: tuple[Term, ...]
    is_negated: bool = False

    @property
    def is_filter(self) -> bool:
        """Whether the clause contains no text to find."""
        return _has_no_text(self.any_of)


def is_common_word(word: str) -> bool:
    """Return whether a lower-case word says little about the subject of a query."""
    return word in _COMMON_WORDS


class Query(Struct, frozen=True):
    """Clauses that must all match, and a time range."""

    clauses: tuple[Clause, ...] = ()
    since: int | None = None  # milliseconds since 1970
    until: int | None = None  # exclusive
    requires_all: bool = False  # typed with AND: sessions with only some of the words do not follow
    language: str = ENGLISH  # of the words; decides about stop words and inflections

    @property
    def is_empty(self) -> bool:
        """Whether the query has no condition; such a query matches nothing."""
        return not self.clauses and self.since is None and self.until is None

    @property
    def words(self) -> tuple[Clause, ...]:
        """The clauses to find in the text."""
        return tuple(clause for clause in self.clauses if not clause.is_filter and not clause.is_negated)

    @property
    def content_words(self) -> tuple[Clause, ...]:
        """The clauses to find in the text without stop words, unless there are only stop words."""
        words = self.words
        return tuple(clause for clause in words if not self._is_stop_word(clause)) or words

    def _is_stop_word(self, clause: Clause) -> bool:
        return all(
            isinstance(term, Word)
            and not term.is_prefix
            and is_stop_word(_strip_punctuation(term.text), self.language)
            for term in clause.any_of
        )

    def with_filters(
        self, *filters: MessageFilter, since: datetime | None = None, until: datetime | None = None
    ) -> "Query":
        """Return the query with additional filters."""
        added = tuple(Clause((filter,)) for filter in filters)
        return replace(
            self,
            clauses=(*self.clauses, *added),
            since=_latest(self.since, _milliseconds(since)),
            until=_earliest(self.until, _milliseconds(until)),
        )

    def within(self, sessions: Iterable[int]) -> "Query":
        """Return the query for these sessions and subagents only."""
        return replace(self, clauses=(*self.clauses, Clause((SessionIds(frozenset(sessions)),))))


def replace_filters(query: Query, look_up: Callable[[MessageFilter], Sequence[PlainTerm] | None]) -> Query:
    """Return the query with each filter replaced by the terms that ``look_up`` returns, if any."""

    def replaced(term: PlainTerm) -> Sequence[PlainTerm]:
        replacement = look_up(term) if isinstance(term, MessageFilter) else None
        return (term,) if replacement is None else replacement

    def alternatives(term: Term) -> Sequence[Term]:
        if not isinstance(term, Not):
            return replaced(term)
        return (Not(tuple(new for negated in term.any_of for new in replaced(negated))),)

    clauses = (
        Clause(tuple(new for term in clause.any_of for new in alternatives(term)), clause.is_negated)
        for clause in query.clauses
    )
    return replace(query, clauses=tuple(clauses))


def parse(text: str, *, now: datetime | None = None) -> Query:
    """Parse a query; never fails. Dates are in the time zone of ``now``, by default local time."""
    zone = now.tzinfo if now is not None else None
    now = now if now is not None else datetime.now(UTC)
    query = Query()
    clauses: list[Clause] = []
    is_alternative = is_negated = requires_all = False
    for item in _items(text):
        operator = _operator(item)
        if operator is not None:
            is_alternative = operator == "OR" or (is_alternative and operator == "NOT")
            is_negated = operator == "NOT" and not is_negated
            requires_all = requires_all or operator == "AND"
            continue
        is_excluded = is_negated is not bool(item["minus"])
        if (with_limit := _apply_time_limit(query, item, is_excluded, now, zone)) is not None:
            query = with_limit
        elif (term := _term(item)) is not None:
            clause = Clause((term,), is_negated=is_excluded)
            if is_alternative and clauses:
                clauses[-1] = _either(clauses[-1], clause)
            else:
                clauses.append(clause)
        else:
            continue  # punctuation
        is_alternative = is_negated = False
    query = replace(query, clauses=tuple(_merge_filters(clauses)), requires_all=requires_all)
    query = replace(query, language=_language(query.words))
    if query.is_empty and any(map(str.isalnum, text)):
        return Query((Clause((Word(text.strip()),)),))
    return query


def _operator(item: dict[str, str | None]) -> str | None:
    is_bare = not item["minus"] and not item["name"] and item["bare"] in _OPERATORS
    return item["bare"] if is_bare else None


def _either(first: Clause, second: Clause) -> Clause:
    """Return a clause that matches if one of two clauses does."""
    return Clause((*_alternatives(first), *_alternatives(second)))


def _alternatives(clause: Clause) -> Sequence[Term]:
    if not clause.is_negated:
        return clause.any_of
    return (Not(tuple(term for term in clause.any_of if not isinstance(term, Not))),)


def invalid_filters(text: str) -> list[InvalidFilter]:
    """Return the items of a query that look like filters but have an invalid value or a misspelt name."""
    from difflib import get_close_matches  # start-up time

    now = datetime.now(UTC)
    found: list[InvalidFilter] = []
    for match in _ITEM.finditer(text):
        name = (match["name"] or "").lower()
        if len(name) >= _MIN_NAME_CHARS and name not in FILTER_NAMES:
            for similar in get_close_matches(name, FILTER_NAMES, n=1, cutoff=_MIN_NAME_SIMILARITY):
                found.append(InvalidFilter(match[0].removeprefix("-"), (), similar))
    for item in _items(text):
        name, value = (item["name"] or "").lower(), item["quoted"] or item["bare"] or ""
        is_date = name in ("since", "until") and parse_date_range(value, now) is not None
        if name and not is_date and _filter(name, value) is None:
            found.append(InvalidFilter(f"{name}:{value}", _ALLOWED_VALUES.get(name, ())))
    return found


def filter_items(text: str) -> list[FilterItem]:
    """Return the valid filters and time limits of a query, with their places in the text."""
    now = datetime.now(UTC)
    found: list[FilterItem] = []
    for match in _ITEM.finditer(text):
        name, value = (match["name"] or "").lower(), (match["quoted"] or match["bare"] or "").strip()
        is_date = name in ("since", "until") and parse_date_range(value, now) is not None
        if name in FILTER_NAMES and (is_date or _filter(name, value) is not None):
            found.append(FilterItem(name, value, match.start(), match.end(), bool(match["minus"])))
    return found


def _items(text: str) -> Iterator[dict[str, str | None]]:
    for match in _ITEM.finditer(text):
        item = match.groupdict()
        if item["name"] is not None and item["name"].lower() not in FILTER_NAMES:
            yield {"minus": item["minus"], "name": None, "quoted": None, "star": None,
                   "bare": match[0].removeprefix("-") if item["minus"] else match[0]}  # fmt: skip
            continue
        yield item


def _apply_time_limit(
    query: Query, item: dict[str, str | None], is_excluded: bool, now: datetime, zone: tzinfo | None
) -> Query | None:
    """Return the query with the time limit of the item; None if the item is not a time limit."""
    name = (item["name"] or "").lower()
    if name not in ("since", "until"):
        return None
    date_range = parse_date_range(item["quoted"] or item["bare"] or "", now, zone)
    if date_range is None:
        return None
    start, end = map(_milliseconds, date_range)
    if (name == "since") is not is_excluded:
        return replace(query, since=_latest(query.since, end if is_excluded else start))
    return replace(query, until=_earliest(query.until, start if is_excluded else end))


def _term(item: dict[str, str | None]) -> PlainTerm | None:
    name, quoted, bare = (item["name"] or "").lower(), item["quoted"], item["bare"]
    value = quoted if quoted is not None else (bare or "")
    if name:
        valid_filter = _filter(name, value)
        if valid_filter is not None:
            return valid_filter
        value = f"{name} {value}"
    if not any(map(str.isalnum, value)):
        return None
    if quoted is not None or name:
        return Phrase(value, is_prefix=bool(item["star"]))
    return Word(value.rstrip("*"), is_prefix=value.endswith("*") and value.rstrip("*")[-1:].isalnum())


def _filter(name: str, value: str) -> MessageFilter | None:
    """Return a filter if its value is allowed. Filters without fixed values accept any text."""
    value = value.strip()
    allowed = _ALLOWED_VALUES.get(name)
    if allowed is not None:
        value = value.lower()
    if not value.strip("*") or (allowed is not None and value not in allowed) or name in ("since", "until"):
        return None
    return MessageFilter(name, value)


def _merge_filters(clauses: list[Clause]) -> Iterator[Clause]:
    """Merge filters that exclude each other: ``role:user role:tool`` means either."""
    groups: dict[str, list[Term]] = {}
    for clause in clauses:
        names = {term.name if isinstance(term, MessageFilter) else "" for term in clause.any_of}
        name = names.pop()
        if not clause.is_negated and not names and name in _SINGLE_VALUED:
            groups.setdefault(name, []).extend(clause.any_of)
        else:
            yield clause
    for terms in groups.values():
        yield Clause(tuple(dict.fromkeys(terms)))


def _has_no_text(terms: Sequence[Term]) -> bool:
    return not any(isinstance(term, Word | Phrase) for term in terms)


def _language(words: Sequence[Clause]) -> str:
    terms = (term for clause in words for term in clause.any_of)
    return detect_language([_strip_punctuation(term.text) for term in terms if isinstance(term, Word)])


def _strip_punctuation(word: str) -> str:
    return word.strip("¿?¡!.,;:'\"()«»„“”").lower()


def _milliseconds(time: datetime | None) -> int | None:
    return int(time.timestamp() * 1000) if time is not None else None


def _latest(first: int | None, second: int | None) -> int | None:
    return max((value for value in (first, second) if value is not None), default=None)


def _earliest(first: int | None, second: int | None) -> int | None:
    return min((value for value in (first, second) if value is not None), default=None)
