"""Normalization to lower case without accents.

`normalize_words` prepares text for the index. Tantivy can do the same word by word,
but that costs a third of the indexing time. Here one translation table handles ASCII,
and the few distinct other characters of a text are replaced one by one, by what
Tantivy itself would produce. `fold_in_place` keeps every character position and is
for highlights.
"""

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from backscroll.index.text.tokenize import extract_cjk, non_ascii_bytes

if TYPE_CHECKING:
    import tantivy

__all__ = [
    "COMBINING_MARKS",
    "fold_accents",
    "fold_characters",
    "fold_in_place",
    "non_ascii_chars",
    "normalize_words",
]

COMBINING_MARKS = frozenset(map(chr, range(0x300, 0x370)))  # accents that are separate characters

# The ranges in which Tantivy's folding table contains letters and digits. A test checks every character.
_FOLDABLE = (
    "[\u00aa\u00b2\u00b3\u00b9\u00ba\u00c0-\u02af\u1d00-\u1dbf\u1e00-\u1eff\u2070-\u209c\u212b\u2183\u2184\u2460-\u24ff"
    "\u2776-\u2793\u2c60-\u2c7f\ua722-\ua7ff\ufb00-\ufb06\uff10-\uff5a\u0370-\u03ff\u1f00-\u1fff\u0401\u0451]"
)
# Folds that Tantivy's table lacks.
_EXTRA_FOLDS = {"İ": "i", "ς": "σ", "Ё": "е", "ё": "е"}
# ASCII letters to lower case, other ASCII except digits to spaces; bytes outside ASCII stay.
_WORD_TABLE = bytes(
    byte + 32 if 65 <= byte <= 90
    else byte if 48 <= byte <= 57 or 97 <= byte <= 122 or byte >= 128
    else 32
    for byte in range(256)
)  # fmt: skip
_ASCII_WORD_TABLE = _WORD_TABLE[:128] + b" " * 128
_SEPARATORS_ONLY = frozenset({b""})

_NON_ASCII = re.compile("[^\x00-\x7f]+")
_MAX_REPLACE_CALLS = 16  # distinct characters up to which str.replace is faster than one regex pass
# Letters with a stroke, which Unicode decomposition does not remove.
_STROKE_FOLDS = {"ø": "o", "ł": "l", "đ": "d", "ħ": "h", "ı": "i", "ŧ": "t", "ς": "σ"}


def fold_accents(text: str) -> str:
    """Replace accented letters by plain ones: ``Größe`` becomes ``Grosse``."""
    return text if text.isascii() else re.sub(_FOLDABLE, _fold_match, text)


def normalize_words(text: bytes, non_ascii: bytes) -> bytes:
    """Return UTF-8 text as words separated by spaces, in lower case and without accents.

    ``non_ascii`` are the bytes of the text outside ASCII. A text has few distinct characters there, and
    most of them only separate words. Replacing one at a time is faster than a search for any of them.
    """
    if not non_ascii:
        return text.translate(_WORD_TABLE)
    chars = non_ascii.decode()
    # Nearly all are often the same character: the arrow after each line number in the output of a file.
    distinct = {chars[0], *chars.replace(chars[0], "")}
    if set(map(_INDEX_FOLDS.__getitem__, distinct)) == _SEPARATORS_ONLY:
        return text.translate(_ASCII_WORD_TABLE)
    folds = {char.encode(): _INDEX_FOLDS[char] for char in distinct}
    for char, fold in folds.items():
        if fold:
            text = text.replace(char, fold)
    if all(fold is not None and fold.isascii() for fold in folds.values()):
        return text.translate(_ASCII_WORD_TABLE)
    for char, fold in folds.items():
        if fold == b"":
            text = text.replace(char, b" ")
    if chars != chars.lower():
        text = text.decode().lower().encode()
    return text.translate(_WORD_TABLE)


def _fold_match(match: re.Match[str]) -> str:
    fold = _INDEX_FOLDS[match[0]]
    return fold.decode() if fold else match[0]


class _IndexFolds(dict[str, bytes | None]):
    """Cache of what Tantivy puts in place of a character.

    Empty if the character separates words; None if it stays or only changes case as in Python.
    """

    def __missing__(self, char: str) -> bytes | None:
        if extra := _EXTRA_FOLDS.get(char) or _fold_greek(char):
            self[char] = extra.encode()
            return self[char]
        folded = "".join(_analyzer(is_folding=True).analyze(char)).lower()
        # Some characters fold to more than letters ("⑴" to "(1)"). They would be split, so they stay.
        if not folded or (folded.isascii() and folded.isalnum()):
            self[char] = folded.encode()
            return self[char]
        lower = "".join(_analyzer(is_folding=False).analyze(char))
        # Python may not know a newer letter, and produces a final sigma at the end of a word.
        self[char] = None if f"a{char}".lower() == f"a{lower}" else lower.encode()
        return self[char]


_INDEX_FOLDS = _IndexFolds()


def _fold_greek(char: str) -> str | None:
    """Return an accented Greek letter without its accents; None for any other character."""
    parts = unicodedata.normalize("NFD", char)
    is_greek = "\u0370" <= parts[0] <= "\u03ff" and all(map(unicodedata.combining, parts[1:]))
    return parts[0].lower() if is_greek and len(parts) > 1 else None


@cache
def _analyzer(*, is_folding: bool) -> "tantivy.TextAnalyzer":
    import tantivy  # loaded on first use: highlights in the TUI do not need the search engine

    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    return (builder.filter(tantivy.Filter.ascii_fold()) if is_folding else builder).build()


def fold_in_place(text: str) -> str:
    """Return the text in lower case without accents, character by character: positions do not change."""
    return fold_characters(text, non_ascii_chars(text))


def fold_characters(text: str, non_ascii: set[str]) -> str:
    """Do the same as `fold_in_place` for a text with known `non_ascii_chars`."""
    folds = {char: fold for char in non_ascii if (fold := _PLACE_FOLDS[ord(char)]) != char}
    if len(folds) > _MAX_REPLACE_CALLS:
        return _NON_ASCII.sub(lambda run: run[0].translate(_PLACE_FOLDS), text).lower()
    for char, fold in folds.items():
        text = text.replace(char, fold)
    return text.lower()


def non_ascii_chars(text: str) -> set[str]:
    """Return the distinct characters of a text outside ASCII."""
    if text.isascii():
        return set()
    # Filtering bytes is faster than filtering characters.
    rest = non_ascii_bytes(text.encode("utf-8", "surrogatepass"))
    return set(rest.decode("utf-8", "surrogatepass"))


class _PlaceFolds(dict[int, str]):
    """Cache of the single character that replaces each character, by code point."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if extract_cjk(char)[1]:
            # The mark on が is not an accent: か is another letter. Half-width letters become full-width.
            wide = unicodedata.normalize("NFKC", char)
            self[code] = wide if len(wide) == 1 else char
            return self[code]
        if not char.isalnum() and char not in COMBINING_MARKS:
            # No query contains punctuation, and without it the text may be pure ASCII, which is faster.
            self[code] = " "
            return " "
        parts = unicodedata.normalize("NFD", char)
        letter = parts[0] if all(map(unicodedata.combining, parts[1:])) else char
        lower = letter.lower()[0]
        self[code] = _STROKE_FOLDS.get(lower, lower)
        return self[code]


_PLACE_FOLDS = _PlaceFolds()
