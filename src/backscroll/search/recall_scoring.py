"""Score of each session for a task: how many of the task's words, or synonyms, its prose contains."""

import math
from collections import defaultdict
from collections.abc import Sequence

from backscroll.index import Filter, Index, Query
from backscroll.index.query.parser import Clause, Word
from backscroll.index.text.inflections import inflections
from backscroll.search.search import Progress
from backscroll.search.synonyms import is_common_word, synonyms

__all__ = ["score_sessions", "with_synonyms"]

_SYNONYM_WEIGHT = 0.7
_WORKSPACE_WEIGHT = 0.7  # the word is the name of the workspace
_COMMON_WORD_WEIGHT = 0.3
_LENGTH_PENALTY = 0.5
_LONG_SESSION_FACTOR = 2  # times the average length from which the penalty applies


def score_sessions(
    index: Index, words: Sequence[str], prose: Query, progress: Progress | None = None
) -> dict[int, float]:
    """Return the summed weight of the words in the prose of each session, by id. Rare words weigh more."""
    lengths = index.count_by_session(prose)
    session_count = max(len(lengths), 1)
    scores: defaultdict[int, float] = defaultdict(float)
    for number, word in enumerate(words):
        if progress is not None:
            progress(number, len(words))
        word_weight = _COMMON_WORD_WEIGHT if is_common_word(word.lower()) else 1.0
        seen: set[int] = set()
        own = tuple(Word(form) for form in _word_forms(word))
        others = tuple(Word(form) for form in _synonym_forms(word))
        # Sessions rarely mention the name of their own project.
        workspace = (Filter("workspace", word.lower()),) if "*" not in word else ()
        for terms, weight in ((own, 1.0), (workspace, _WORKSPACE_WEIGHT), (others, _SYNONYM_WEIGHT)):
            if not terms:
                continue
            found = index.count_by_session(Query((Clause(terms), *prose.clauses))).keys() - seen
            seen |= found
            for session in found:
                scores[session] += word_weight * weight * math.log1p(session_count / (len(seen) + 0.5))
    average = sum(lengths.values()) / session_count
    return {session: score / _length_penalty(lengths[session], average) for session, score in scores.items()}


def _length_penalty(length: int, average: float) -> float:
    """Return the divisor for a session: a very long one contains any word by chance."""
    return 1.0 + _LENGTH_PENALTY * max(math.log(length / (_LONG_SESSION_FACTOR * average)), 0.0)


def with_synonyms(word: str) -> Clause:
    """Return a clause for a word in any form or any of its synonyms."""
    return Clause(tuple(Word(form) for form in (*_word_forms(word), *_synonym_forms(word))))


def _word_forms(word: str) -> tuple[str, ...]:
    return inflections(word.lower()) if word.isalpha() else (word,)


def _synonym_forms(word: str) -> tuple[str, ...]:
    return synonyms(word.lower()) if word.isalnum() else ()
