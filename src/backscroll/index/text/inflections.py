"""Inflected forms of a word: drop, drops, dropped, dropping.

Used only if no message contains the words as typed. A generated form that is not a
word costs one dictionary lookup and matches nothing, so the rules may be rough.
"""

from collections.abc import Iterator

from backscroll.index.text.languages import ENGLISH, RUSSIAN, forms_with_stem, is_cyrillic

__all__ = ["inflections"]

_MIN_LETTERS = 3  # shorter words have no useful inflections
_VOWELS = "aeiou"


def inflections(word: str, language: str = ENGLISH) -> tuple[str, ...]:
    """Return a lower-case word without accents as it is, then its other forms.

    Queries in other languages contain English terms, so the English forms are always included.
    """
    if len(word) < _MIN_LETTERS or not word.isalpha():
        return (word,)
    if is_cyrillic(word):
        return (word, *forms_with_stem(word, RUSSIAN))
    others = forms_with_stem(word, language) if language not in (ENGLISH, RUSSIAN) else ()
    return tuple(dict.fromkeys([word, *_english_forms(word), *others]))


def _english_forms(word: str) -> Iterator[str]:
    if word.isascii():
        for base in [base for base in _bases(word) if len(base) >= _MIN_LETTERS] or [word]:
            yield from _inflect(base)


def _bases(word: str) -> Iterator[str]:
    """Yield the words that the word may be a form of."""
    if word.endswith(("ies", "ied")):
        yield f"{word[:-3]}y"
    if word.endswith("s") and not word.endswith("ss"):
        yield word[:-1]
        if word.endswith("es"):
            yield word[:-2]
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            stem = word.removesuffix(suffix)
            yield stem
            yield f"{stem}e"
            if _ends_doubled(stem):
                yield stem[:-1]


def _inflect(base: str) -> Iterator[str]:
    yield base
    yield f"{base}s"
    if base.endswith("e"):
        yield from (f"{base}d", f"{base[:-1]}ing")
        return
    if base.endswith("y") and base[-2] not in _VOWELS:
        yield from (f"{base[:-1]}ies", f"{base[:-1]}ied", f"{base}ing")
        return
    yield from (f"{base}ed", f"{base}ing")
    if base.endswith(("s", "x", "z", "ch", "sh")):
        yield f"{base}es"
    if base[-1] not in f"{_VOWELS}swxy" and base[-2] in _VOWELS and base[-3:-2] not in _VOWELS:
        yield from (f"{base}{base[-1]}ed", f"{base}{base[-1]}ing")


def _ends_doubled(stem: str) -> bool:
    return len(stem) > _MIN_LETTERS and stem[-1] == stem[-2] and stem[-1] not in _VOWELS
