"""How much of a task came up in each session: its words, or others that may stand for them."""

import math
from collections import defaultdict
from collections.abc import Sequence

from backscroll.index import Filter, Index, Query
from backscroll.index.query.parser import Clause, Word
from backscroll.index.text.inflections import inflections
from backscroll.search.search import Progress
from backscroll.search.synonyms import is_everyday, synonyms

__all__ = ["score_sessions", "with_synonyms"]

_KIN = 0.7  # what a word that stands for another counts beside it
_PLACE = 0.7  # and what being held in a workspace of that name
_LONG = 0.5  # how much is taken from a session that is far longer than others
_TWICE = 2  # times as long as others: from there on it is far longer
_EVERYDAY = 0.3  # what words of every day count beside telling ones


def score_sessions(
    index: Index, words: Sequence[str], talk: Query, progress: Progress | None = None
) -> dict[int, float]:
    """What the words weigh that came up in the talk of each session, by number; rare ones weigh more."""
    lengths = index.count_by_session(talk)
    sessions = max(len(lengths), 1)
    covered: defaultdict[int, float] = defaultdict(float)
    for number, word in enumerate(words):
        if progress is not None:
            progress(number, len(words))
        weight = _EVERYDAY if is_everyday(word.lower()) else 1.0
        seen: set[int] = set()
        own = tuple(Word(one) for one in _forms(word))
        others = tuple(Word(one) for one in _kin(word))
        # Within a project hardly anybody says what it is called.
        place = (Filter("workspace", word.lower()),) if "*" not in word else ()
        for some, share in ((own, 1.0), (place, _PLACE), (others, _KIN)):
            if not some:
                continue
            found = index.count_by_session(Query((Clause(some), *talk.clauses))).keys() - seen
            seen |= found
            for session in found:
                covered[session] += weight * share * math.log1p(sessions / (len(seen) + 0.5))
    middle = sum(lengths.values()) / sessions
    return {one: weight / _allowance(lengths[one], middle) for one, weight in covered.items()}


def _allowance(length: int, middle: float) -> float:
    """By how much more a very long session has any word by chance."""
    return 1.0 + _LONG * max(math.log(length / (_TWICE * middle)), 0.0)


def with_synonyms(word: str) -> Clause:
    """A word in any form, or another that may stand for it."""
    return Clause(tuple(Word(one) for one in (*_forms(word), *_kin(word))))


def _forms(word: str) -> tuple[str, ...]:
    return inflections(word.lower()) if word.isalpha() else (word,)


def _kin(word: str) -> tuple[str, ...]:
    return synonyms(word.lower()) if word.isalnum() else ()
