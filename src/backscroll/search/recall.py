"""Sessions that are relevant to a task, in the order of `search`, with the messages to quote.

A task is a sentence or a page of text, not a query; it has no syntax. Its words are searched like those of
a query. Excerpts are taken from what was said in a session, wherever the words were found.
"""

from collections import defaultdict
from collections.abc import Iterator

from msgspec import Struct

from backscroll.archive import Archive
from backscroll.index import Filter, Index, Query
from backscroll.index.query.parser import Clause, SessionIds, Word
from backscroll.index.text.languages import detect_language
from backscroll.search.search import Progress, resolve_filters
from backscroll.search.synonyms import synonyms

__all__ = ["RecallCandidate", "find_candidates"]

_MAX_WORDS = 32  # the first lines of a long task usually name its subject
_MAX_SESSIONS = 30
_STEPS = 2  # of the progress report
_MAX_PROSE_HITS = 200  # messages from which the best positions are taken
_PROSE_POSITIONS = 4  # per session
_MIN_RELATIVE_SCORE = 0.1  # of the best session
_MIN_SIGNIFICANT_WORDS = 3  # words that do not occur together by chance
_PUNCTUATION = "¿?¡!.,;:'\"`()[]{}<>*“”„‘’«»"
_PROSE = Clause((Filter("role", "user"), Filter("role", "assistant")))


class RecallCandidate(Struct, frozen=True):
    """A session or subagent, and the positions of its relevant messages, prose first."""

    session: int
    positions: tuple[int, ...]
    query: Query  # for highlights
    complete_positions: frozenset[int] = frozenset()  # messages that contain the whole task


def find_candidates(
    archive: Archive,
    index: Index,
    task: str,
    *,
    workspace: str | None = None,
    progress: Progress | None = None,
) -> list[RecallCandidate]:
    """Return the sessions that are relevant to a task, best first. ``progress`` can cancel between steps."""
    words = list(dict.fromkeys(_split_words(task)))[:_MAX_WORDS]
    if not words:
        return []
    all_clauses = tuple(Clause((Word(word),)) for word in words)
    query = index.with_language(Query(all_clauses, language=detect_language(list(map(str.lower, words)))))
    clauses = query.content_words
    filters = [Filter("workspace", workspace)] if workspace else []
    query = resolve_filters(archive, query.with_filters(*filters))
    report = progress or (lambda done, total: None)
    report(0, _STEPS)
    hits = index.start_search(query, limit=_MAX_SESSIONS, with_counts=False, synonyms=synonyms).hits
    min_score = max((hit.score for hit in hits), default=0.0) * _MIN_RELATIVE_SCORE
    relevant = [hit for hit in hits if hit.score >= min_score]
    report(1, _STEPS)
    prose_positions = _find_prose(index, clauses, frozenset(hit.session for hit in relevant))
    report(2, _STEPS)
    is_significant = len(clauses) >= _MIN_SIGNIFICANT_WORDS
    return [
        RecallCandidate(
            hit.session,
            tuple(dict.fromkeys([*prose_positions.get(hit.session, [])[:_PROSE_POSITIONS], hit.position])),
            Query(clauses, language=query.language),
            frozenset([hit.position] if is_significant and hit.is_strict else []),
        )
        for hit in relevant
    ]


def _find_prose(index: Index, clauses: tuple[Clause, ...], sessions: frozenset[int]) -> dict[int, list[int]]:
    """Return the positions of prose with some of the words in each session, best first."""
    query = Query((*clauses, _PROSE, Clause((SessionIds(sessions),))))
    result = index.start_search(query, limit=_MAX_PROSE_HITS, by="message", match_any=True, with_counts=False)
    positions: defaultdict[int, list[int]] = defaultdict(list)
    for hit in result.hits:
        positions[hit.session].append(hit.position)
    return positions


def _split_words(task: str) -> Iterator[str]:
    for word in task.split():
        stripped = word.strip(_PUNCTUATION)
        if any(map(str.isalnum, stripped)):
            yield stripped
