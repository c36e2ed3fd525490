"""Texts in small letters without accents, with every character in its place."""

import re
import unicodedata

from backscroll.index.text import tokenize

__all__ = ["COMBINING_MARKS", "fold_characters", "fold_in_place", "non_ascii_chars"]

COMBINING_MARKS = frozenset(map(chr, range(0x300, 0x370)))  # accents that are characters of their own
_BEYOND_ASCII = re.compile("[^\x00-\x7f]+")
_FEW = 16  # different letters that are sooner replaced each in the whole text than all of them one by one
# Letters with a stroke through them, which no decomposition takes off.
_STROKES = {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "ŧ": "t", "ς": "σ"}


def fold_in_place(text: str) -> str:
    """Small letters without accents, character by character: every place stays where it is."""
    return fold_characters(text, non_ascii_chars(text))


def fold_characters(text: str, odd: set[str]) -> str:
    """The same for whoever knows which characters of the text are `non_ascii_bytes`."""
    folds = {char: fold_in_place for char in odd if (fold_in_place := _FOLDS[ord(char)]) != char}
    if len(folds) > _FEW:
        return _BEYOND_ASCII.sub(lambda run: run[0].translate(_FOLDS), text).lower()
    for char, fold_in_place in folds.items():
        text = text.replace(char, fold_in_place)
    return text.lower()


def non_ascii_chars(text: str) -> set[str]:
    """The characters of a text that are none of ASCII's: sooner had as bytes than one by one."""
    if text.isascii():
        return set()
    rest = tokenize.non_ascii_bytes(text.encode("utf-8", "surrogatepass"))
    return set(rest.decode("utf-8", "surrogatepass"))


class _Folds(dict[int, str]):
    """Each character's fold, found when it is first asked for."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if tokenize.extract_cjk(char)[1]:
            # The mark on が is no accent: か is another letter. Letters of half the width are the same ones.
            wide = unicodedata.normalize("NFKC", char)
            self[code] = wide if len(wide) == 1 else char
            return self[code]
        if not char.isalnum() and char not in COMBINING_MARKS:
            # Nobody looks for a dash, and without it a text may be of ASCII alone: it is gone through sooner.
            self[code] = " "
            return " "
        parts = unicodedata.normalize("NFD", char)
        letter = parts[0] if all(map(unicodedata.combining, parts[1:])) else char
        low = letter.lower()[0]
        self[code] = _STROKES.get(low, low)
        return self[code]


_FOLDS = _Folds()
