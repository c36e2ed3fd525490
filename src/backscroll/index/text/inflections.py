"""The forms that an English word takes by its plain endings: drop, drops, dropped, dropping.

Only asked for when nothing has the word as it was typed. A form that is no word
costs a look into the dictionary and finds nothing, so the rules may be rough.
"""

from collections.abc import Iterator

__all__ = ["inflections"]

_SHORTEST = 3  # letters; what is shorter has no endings worth the name
_VOWELS = "aeiou"


def inflections(word: str) -> tuple[str, ...]:
    """A word in small letters first as it is, then in its other forms."""
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return (word,)
    bases = [base for base in _bases(word) if len(base) >= _SHORTEST] or [word]
    return tuple(dict.fromkeys([word, *(form for base in bases for form in _inflected(base))]))


def _bases(word: str) -> Iterator[str]:
    """What a word may be a form of."""
    if word.endswith(("ies", "ied")):
        yield f"{word[:-3]}y"
    if word.endswith("s") and not word.endswith("ss"):
        yield word[:-1]
        if word.endswith("es"):
            yield word[:-2]
    for ending in ("ed", "ing"):
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            yield stem
            yield f"{stem}e"
            if _is_doubled(stem):
                yield stem[:-1]


def _inflected(base: str) -> Iterator[str]:
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


def _is_doubled(stem: str) -> bool:
    return len(stem) > _SHORTEST and stem[-1] == stem[-2] and stem[-1] not in _VOWELS
