"""Synonyms among software developers.

A question rarely uses the words of the answer. ``synonyms.txt`` lists groups of words
with a similar meaning.
"""

from collections import defaultdict
from functools import cache
from importlib.resources import files

from backscroll.index.text.inflections import inflections

__all__ = ["synonyms"]


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


def synonyms(word: str) -> tuple[str, ...]:
    """Return the synonyms of a lower-case word in all their forms, without the word itself."""
    forms = inflections(word)
    table = _synonym_table()
    bases = dict.fromkeys(base for form in forms for base in table.get(form, ()))
    return tuple(dict.fromkeys(form for base in bases for form in inflections(base) if form not in forms))
