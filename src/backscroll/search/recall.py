"""Sessions that are relevant to a task: several searches, combined by rank.

A task is a sentence or a page of text, not a query; it has no syntax. The searches are
for all words together, for some of the words, for identifiers and for file names. The
largest part of the score is the coverage: how many of the task's words, or synonyms,
the prose of a session contains. A session that several searches find ranks higher.
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

_MAX_WORDS = 32  # the first lines of a long task usually name its subject
_MAX_SESSIONS = 30  # per search and in total
_MAX_PROSE_HITS = 200  # messages from which the best positions are taken
_PROSE_POSITIONS = 4  # per session
_RANK_SMOOTHING = 10  # reciprocal rank: weight / (smoothing + rank)
_MIN_RELATIVE_SCORE = 0.4  # of the best session
_COVERAGE_RANK_WEIGHT = 3.0
_COVERAGE_WEIGHT = 0.6
_MIN_SIGNIFICANT_WORDS = 3  # words that do not occur together by chance
_PUNCTUATION = "?!.,;:'\"`()[]{}<>*“”„‘’«»"
_IDENTIFIER = re.compile(r"\w+(?:[_./:-]\w+)+|[a-z]+[A-Z]\w*|(?=\w*\d)(?=\w*[^\W\d])\w+")
_FILE_NAME = re.compile(r"[\w.-]+\.[A-Za-z]\w{0,4}")
_PROSE = Clause((Filter("role", "user"), Filter("role", "assistant")))


class RecallCandidate(Struct, frozen=True):
    """A session or subagent, and the positions of its relevant messages, prose first."""

    session: int
    positions: tuple[int, ...]
    query: Query  # for highlights
    complete_positions: frozenset[int] = frozenset()  # messages that contain the whole task


class _RecallSearch(Struct, frozen=True):
    """One of the searches for a task."""

    query: Query
    weight: float
    match_any: bool = False
    is_complete: bool = False  # hits contain all words of the task, and it has enough of them


def find_candidates(
    archive: Archive,
    index: Index,
    task: str,
    *,
    workspace: str | None = None,
    progress: Progress | None = None,
) -> list[RecallCandidate]:
    """Return the sessions that are relevant to a task, best first."""
    words = list(dict.fromkeys(_split_words(task)))[:_MAX_WORDS]
    if not words:
        return []
    all_clauses = tuple(Clause((Word(word),)) for word in words)
    clauses = tuple(clause for clause in all_clauses if not clause.is_stop_word) or all_clauses
    filters = [Filter("workspace", workspace)] if workspace else []
    scores: defaultdict[int, float] = defaultdict(float)
    positions: defaultdict[int, list[int]] = defaultdict(list)
    complete: defaultdict[int, set[int]] = defaultdict(set)
    for search in _searches(words, all_clauses, clauses):
        query = resolve_filters(archive, search.query.with_filters(*filters))
        result = index.start_search(query, limit=_MAX_SESSIONS, match_any=search.match_any, with_counts=False)
        for rank, hit in enumerate(result.hits, start=1):
            scores[hit.session] += search.weight / (_RANK_SMOOTHING + rank)
            positions[hit.session].append(hit.position)
            if search.is_complete and not result.is_relaxed:
                complete[hit.session].add(hit.position)
    prose = resolve_filters(archive, Query((_PROSE,)).with_filters(*filters))
    words = [term.text for clause in clauses for term in clause.any_of if isinstance(term, Word)]
    _add_coverage(scores, score_sessions(index, words, prose, progress))
    min_score = max(scores.values(), default=0.0) * _MIN_RELATIVE_SCORE
    relevant = [session for session in scores if scores[session] >= min_score]
    ranked = sorted(relevant, key=lambda session: (-scores[session], -session))[:_MAX_SESSIONS]
    # Excerpts are taken from prose, wherever the session was found.
    prose_positions = _find_prose(index, clauses, frozenset(ranked))
    own_query, wide_query = Query(clauses), Query(tuple(with_synonyms(word) for word in words))
    if by_synonyms := frozenset(ranked) - prose_positions.keys() - positions.keys():
        prose_positions |= _find_prose(index, wide_query.clauses, by_synonyms)
    return [
        RecallCandidate(
            session,
            tuple(dict.fromkeys([*prose_positions.get(session, [])[:_PROSE_POSITIONS], *positions[session]])),
            wide_query if session in by_synonyms else own_query,
            frozenset(complete[session]),
        )
        for session in ranked
    ]


def _add_coverage(scores: defaultdict[int, float], coverage: dict[int, float]) -> None:
    """Add the coverage of each session to its score, by rank and relative to the best."""
    best = max(coverage.values(), default=1.0)
    ranked = sorted(coverage, key=lambda session: (-coverage[session], -session))[:_MAX_SESSIONS]
    for rank, session in enumerate(ranked, start=1):
        scores[session] += (
            _COVERAGE_RANK_WEIGHT / (_RANK_SMOOTHING + rank) + _COVERAGE_WEIGHT * coverage[session] / best
        )


def _find_prose(index: Index, clauses: tuple[Clause, ...], sessions: frozenset[int]) -> dict[int, list[int]]:
    """Return the positions of prose with some of the words in each session, best first."""
    query = Query((*clauses, _PROSE, Clause((SessionIds(sessions),))))
    result = index.start_search(query, limit=_MAX_PROSE_HITS, by="message", match_any=True, with_counts=False)
    positions: defaultdict[int, list[int]] = defaultdict(list)
    for hit in result.hits:
        positions[hit.session].append(hit.position)
    return positions


def _searches(
    words: Sequence[str], all_clauses: tuple[Clause, ...], clauses: tuple[Clause, ...]
) -> Iterator[_RecallSearch]:
    yield _RecallSearch(Query((*clauses, _PROSE)), 1.0, match_any=True)
    yield _RecallSearch(Query(all_clauses), 1.5, is_complete=len(clauses) >= _MIN_SIGNIFICANT_WORDS)
    yield _RecallSearch(Query(clauses), 1.0, match_any=True)
    if identifiers := _any_term([Word(word) for word in words if _IDENTIFIER.fullmatch(word)]):
        yield _RecallSearch(identifiers, 1.0)
    if files := _any_term([Filter("file", word) for word in words if _FILE_NAME.fullmatch(word)]):
        yield _RecallSearch(files, 0.5)


def _split_words(task: str) -> Iterator[str]:
    for word in task.split():
        stripped = word.strip(_PUNCTUATION)
        if any(map(str.isalnum, stripped)):
            yield stripped


def _any_term(terms: Sequence[Term]) -> Query | None:
    return Query((Clause(tuple(terms)),)) if terms else None
