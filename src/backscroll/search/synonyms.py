"""Synonyms among software developers.

A question rarely uses the words of the answer. ``synonyms.txt`` lists groups of words
with a similar meaning.
"""

from collections import defaultdict
from functools import cache
from importlib.resources import files

from backscroll.index.text.inflections import inflections

__all__ = ["is_common_word", "synonyms"]

# Everyday words that say little about the subject of a task.
_COMMON_WORD_LIST = """
after again against all already also another anything back become been before between both came come day
done down during each every everything few first gave get give given go goes gone good got happen happened
kept keep know last let like long look made make many may might more most much must need new no off old
once one only other out over own please put really said same say see shall some something still take taken
tell thing think through time told took two under up use used using want way went work works
"""
_COMMON_WORDS = frozenset(_COMMON_WORD_LIST.split())


@cache
def _synonym_table() -> dict[str, tuple[str, ...]]:
    """Return the base forms of the synonyms of each word in ``synonyms.txt``."""
    table: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for line in files("backscroll.search").joinpath("synonyms.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        words = line.split()
        for word in words:
            table[word].update(dict.fromkeys(other for other in words if other != word))
    return {word: tuple(others) for word, others in table.items()}


def is_common_word(word: str) -> bool:
    """Return whether a lower-case word says little about the subject of a task."""
    return word in _COMMON_WORDS


def synonyms(word: str) -> tuple[str, ...]:
    """Return the synonyms of a lower-case word in all their forms, without the word itself."""
    forms = inflections(word)
    table = _synonym_table()
    bases = dict.fromkeys(base for form in forms for base in table.get(form, ()))
    return tuple(dict.fromkeys(form for base in bases for form in inflections(base) if form not in forms))
