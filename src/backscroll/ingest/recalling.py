"""Which earlier sessions bear on a task: asked in several ways, the answers joined by rank.

A task is a sentence or a page, not a query: nothing in it is syntax. The whole of it
is looked for as it stands, its words one by one, the identifiers in it and the files
that it names; above all it counts how many of its words came up in a session's
talk, rare ones for more. A session that several of these find comes before one that
a single one finds.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from backscroll.archive import Archive
from backscroll.index import Filter, Index, Query
from backscroll.index.endings import forms
from backscroll.index.query import Clause, Sessions, Term, Word
from backscroll.ingest.finding import resolve

__all__ = ["Lead", "leads"]

_WORDS = 32  # of a task that are looked for; a page says in its first lines what it is about
_DEPTH = 30  # sessions that each way of asking may name
_SAID = 200  # messages of these sessions among which the best are taken
_PLACES = 4  # of each
_SMOOTHING = 10  # how much a first place counts above a second
_LEAST = 0.4  # of the best session's score that makes another one worth a look
_COVERED = 3.0  # what the words that came up in a session count, beside the ways of asking
_EDGES = "?!.,;:'\"`()[]{}<>*“”„‘’«»"
_IDENTIFIER = re.compile(r"\w+(?:[_./:-]\w+)+|[a-z]+[A-Z]\w*|(?=\w*\d)(?=\w*[^\W\d])\w+")
_FILE = re.compile(r"[\w.-]+\.[A-Za-z]\w{0,4}")
_TALK = Clause((Filter("role", "user"), Filter("role", "assistant")))


class Lead(Struct, frozen=True):
    """A session or subagent by its number, and where in it to look, what was said before what was done."""

    session: int
    positions: tuple[int, ...]
    query: Query  # to mark what was found


class _Way(Struct, frozen=True):
    """One way to ask for a task."""

    query: Query
    weight: float
    is_loose: bool = False


def leads(archive: Archive, index: Index, task: str, *, workspace: str | None = None) -> list[Lead]:
    """The sessions that bear on a task, best first."""
    words = list(dict.fromkeys(_words(task)))[:_WORDS]
    if not words:
        return []
    every = tuple(Clause((Word(word),)) for word in words)
    telling = tuple(clause for clause in every if not clause.is_stop_word) or every
    condition = [Filter("workspace", workspace)] if workspace else []
    scores: defaultdict[int, float] = defaultdict(float)
    positions: defaultdict[int, list[int]] = defaultdict(list)
    for way in _ways(words, every, telling):
        query = resolve(archive, way.query.narrowed(*condition))
        found = index.search(query, limit=_DEPTH, is_loose=way.is_loose, is_counted=False)
        for place, hit in enumerate(found.hits, start=1):
            scores[hit.session] += way.weight / (_SMOOTHING + place)
            positions[hit.session].append(hit.position)
    talk = resolve(archive, Query((_TALK,)).narrowed(*condition))
    for place, session in enumerate(_covering(index, telling, talk), start=1):
        scores[session] += _COVERED / (_SMOOTHING + place)
    least = max(scores.values(), default=0.0) * _LEAST
    likely = [session for session in scores if scores[session] >= least]
    ordered = sorted(likely, key=lambda session: (-scores[session], -session))[:_DEPTH]
    # Excerpts are taken from what was said, wherever the session was found.
    there = Clause((Sessions(frozenset(ordered)),))
    said: defaultdict[int, list[int]] = defaultdict(list)
    asked = Query((*telling, _TALK, there))
    for hit in index.search(asked, limit=_SAID, by="message", is_loose=True, is_counted=False).hits:
        said[hit.session].append(hit.position)
    looked_for = Query(telling)
    return [
        Lead(one, tuple(dict.fromkeys([*said[one][:_PLACES], *positions[one]])), looked_for)
        for one in ordered
    ]


def _ways(words: Sequence[str], every: tuple[Clause, ...], telling: tuple[Clause, ...]) -> Iterator[_Way]:
    yield _Way(Query((*telling, _TALK)), 1.0, is_loose=True)
    yield _Way(Query(every), 1.5)
    yield _Way(Query(telling), 1.0, is_loose=True)
    if named := _either([Word(word) for word in words if _IDENTIFIER.fullmatch(word)]):
        yield _Way(named, 1.0)
    if files := _either([Filter("file", word) for word in words if _FILE.fullmatch(word)]):
        yield _Way(files, 0.5)


def _covering(index: Index, telling: Sequence[Clause], talk: Query) -> list[int]:
    """The sessions in whose talk the most words of the task came up, rare words counting for more."""
    sessions = max(len(index.count_by_session(talk)), 1)
    covered: defaultdict[int, float] = defaultdict(float)
    for clause in telling:
        terms = [Word(form) for term in clause.any_of if isinstance(term, Word) for form in _forms(term.text)]
        found = index.count_by_session(Query((Clause(tuple(terms)), *talk.clauses)))
        for session in found:
            covered[session] += math.log1p(sessions / (len(found) + 0.5))
    return sorted(covered, key=lambda session: (-covered[session], -session))[:_DEPTH]


def _forms(word: str) -> tuple[str, ...]:
    return forms(word.lower()) if word.isalpha() else (word,)


def _words(task: str) -> Iterator[str]:
    for word in task.split():
        bare = word.strip(_EDGES)
        if any(map(str.isalnum, bare)):
            yield bare


def _either(terms: Sequence[Term]) -> Query | None:
    return Query((Clause(tuple(terms)),)) if terms else None
