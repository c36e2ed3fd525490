"""Which earlier sessions bear on a task: asked in several ways, the answers joined by rank.

A task is a sentence or a page, not a query: nothing in it is syntax. The whole of it
is looked for as it stands, its words one by one, the identifiers in it and the files
that it names; above all it counts how much of it came up in a session's talk, in its
own words or in others for the same. A session that several of these find comes before
one that a single one finds.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from backscroll.archive import Archive
from backscroll.index import Filter, Index, Query
from backscroll.index.query.parser import Clause, SessionIds, Term, Word
from backscroll.search.recall_scoring import score_sessions, with_synonyms
from backscroll.search.search import Progress, resolve_filters

__all__ = ["RecallCandidate", "find_candidates"]

_WORDS = 32  # of a task that are looked for; a page says in its first lines what it is about
_DEPTH = 30  # sessions that each way of asking may name
_SAID = 200  # messages of these sessions among which the best are taken
_PLACES = 4  # of each
_SMOOTHING = 10  # how much a first place counts above a second
_LEAST = 0.4  # of the best session's score that makes another one worth a look
_COVERED = 3.0  # what counts having more of the task than others, beside the ways of asking
_MUCH = 0.6  # and what having as much of it as the best
_WHOLE = 3  # words that do not come together by chance
_EDGES = "?!.,;:'\"`()[]{}<>*“”„‘’«»"
_IDENTIFIER = re.compile(r"\w+(?:[_./:-]\w+)+|[a-z]+[A-Z]\w*|(?=\w*\d)(?=\w*[^\W\d])\w+")
_FILE = re.compile(r"[\w.-]+\.[A-Za-z]\w{0,4}")
_TALK = Clause((Filter("role", "user"), Filter("role", "assistant")))


class RecallCandidate(Struct, frozen=True):
    """A session or subagent by its number, and where in it to look, what was said before what was done."""

    session: int
    positions: tuple[int, ...]
    query: Query  # to mark what was found
    sure: frozenset[int] = frozenset()  # positions of messages that have all of the task in them


class _Way(Struct, frozen=True):
    """One way to ask for a task."""

    query: Query
    weight: float
    match_any: bool = False
    is_whole: bool = False  # what it finds has all of the task in it, and that is a lot


def find_candidates(
    archive: Archive,
    index: Index,
    task: str,
    *,
    workspace: str | None = None,
    progress: Progress | None = None,
) -> list[RecallCandidate]:
    """The sessions that bear on a task, best first."""
    words = list(dict.fromkeys(_words(task)))[:_WORDS]
    if not words:
        return []
    every = tuple(Clause((Word(word),)) for word in words)
    telling = tuple(clause for clause in every if not clause.is_stop_word) or every
    condition = [Filter("workspace", workspace)] if workspace else []
    scores: defaultdict[int, float] = defaultdict(float)
    positions: defaultdict[int, list[int]] = defaultdict(list)
    sure: defaultdict[int, set[int]] = defaultdict(set)
    for way in _ways(words, every, telling):
        query = resolve_filters(archive, way.query.with_filters(*condition))
        found = index.start_search(query, limit=_DEPTH, match_any=way.match_any, with_counts=False)
        for place, hit in enumerate(found.hits, start=1):
            scores[hit.session] += way.weight / (_SMOOTHING + place)
            positions[hit.session].append(hit.position)
            if way.is_whole and not found.is_relaxed:
                sure[hit.session].add(hit.position)
    talk = resolve_filters(archive, Query((_TALK,)).with_filters(*condition))
    words = [term.text for clause in telling for term in clause.any_of if isinstance(term, Word)]
    covered = score_sessions(index, words, talk, progress)
    best = max(covered.values(), default=1.0)
    most = sorted(covered, key=lambda session: (-covered[session], -session))[:_DEPTH]
    for place, session in enumerate(most, start=1):
        scores[session] += _COVERED / (_SMOOTHING + place) + _MUCH * covered[session] / best
    least = max(scores.values(), default=0.0) * _LEAST
    likely = [session for session in scores if scores[session] >= least]
    ordered = sorted(likely, key=lambda session: (-scores[session], -session))[:_DEPTH]
    # Excerpts are taken from what was said, wherever the session was found.
    said = _said(index, telling, frozenset(ordered))
    own, wide = Query(telling), Query(tuple(with_synonyms(word) for word in words))
    if silent := frozenset(ordered) - said.keys() - positions.keys():
        said |= _said(index, wide.clauses, silent)  # found by other words than the task's
    return [
        RecallCandidate(
            one,
            tuple(dict.fromkeys([*said.get(one, [])[:_PLACES], *positions[one]])),
            wide if one in silent else own,
            frozenset(sure[one]),
        )
        for one in ordered
    ]


def _said(index: Index, clauses: tuple[Clause, ...], sessions: frozenset[int]) -> dict[int, list[int]]:
    """Where in the talk of sessions some of this came up, the best places of each first."""
    asked = Query((*clauses, _TALK, Clause((SessionIds(sessions),))))
    said: defaultdict[int, list[int]] = defaultdict(list)
    for hit in index.start_search(asked, limit=_SAID, by="message", match_any=True, with_counts=False).hits:
        said[hit.session].append(hit.position)
    return said


def _ways(words: Sequence[str], every: tuple[Clause, ...], telling: tuple[Clause, ...]) -> Iterator[_Way]:
    yield _Way(Query((*telling, _TALK)), 1.0, match_any=True)
    yield _Way(Query(every), 1.5, is_whole=len(telling) >= _WHOLE)
    yield _Way(Query(telling), 1.0, match_any=True)
    if named := _either([Word(word) for word in words if _IDENTIFIER.fullmatch(word)]):
        yield _Way(named, 1.0)
    if files := _either([Filter("file", word) for word in words if _FILE.fullmatch(word)]):
        yield _Way(files, 0.5)


def _words(task: str) -> Iterator[str]:
    for word in task.split():
        bare = word.strip(_EDGES)
        if any(map(str.isalnum, bare)):
            yield bare


def _either(terms: Sequence[Term]) -> Query | None:
    return Query((Clause(tuple(terms)),)) if terms else None
