"""Accents taken off letters before the engine sees a text.

The engine can do it word by word, at a fifth of the cost of indexing. Few texts
have letters that need it, so it is done here, for those alone, with the engine's
own table.
"""

import re
from functools import cache

import tantivy

__all__ = ["fold_accents", "fold_encoded"]

# Where the engine's table has letters and digits; a test asks it about every character there is.
_FOLDABLE = re.compile(
    "[\u00aa\u00b2\u00b3\u00b9\u00ba\u00c0-\u02af\u1d00-\u1dbf\u1e00-\u1eff\u2070-\u209c\u212b\u2183\u2184\u2460-\u24ff"
    "\u2776-\u2793\u2c60-\u2c7f\ua722-\ua7ff\ufb00-\ufb06\uff10-\uff5a]"
)
_ASCII = bytes(range(128))


def fold_accents(text: str) -> str:
    """A text with its letters as they are typed without accents: ``Größe`` becomes ``Grosse``."""
    return text if text.isascii() else _FOLDABLE.sub(_folded, text)


def fold_encoded(raw: bytes) -> bytes:
    """The same of a text's UTF-8.

    A text has few different letters with accents, and one at a time is found faster than any of them.
    """
    for char in set(_FOLDABLE.findall(raw.translate(None, _ASCII).decode())):
        raw = raw.replace(char.encode(), _FOLDS[char].encode())
    return raw


def _folded(found: re.Match[str]) -> str:
    return _FOLDS[found[0]]


class _Folds(dict[str, str]):
    """Each character's fold, asked for once."""

    def __missing__(self, char: str) -> str:
        found = _engine().analyze(char)
        # Some fold to more than letters, "⑴" to "(1)"; these would fall apart, and stay as they are.
        self[char] = found[0] if found and found[0].isalnum() else char
        return self[char]


_FOLDS = _Folds()


@cache
def _engine() -> tantivy.TextAnalyzer:
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
        .build()
    )
