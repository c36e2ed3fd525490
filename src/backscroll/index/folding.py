"""Accents taken off letters before the engine sees a text.

The engine can do it word by word, at a fifth of the cost of indexing. Few texts
have letters that need it, so it is done here, for those alone, with the engine's
own table.
"""

import re
from functools import cache

import tantivy

__all__ = ["bare", "fold_accents"]

# Where the engine's table has letters and digits; a test asks it about every character there is.
_FOLDABLE = (
    "[\u00aa\u00b2\u00b3\u00b9\u00ba\u00c0-\u02af\u1d00-\u1dbf\u1e00-\u1eff\u2070-\u209c\u212b\u2183\u2184\u2460-\u24ff"
    "\u2776-\u2793\u2c60-\u2c7f\ua722-\ua7ff\ufb00-\ufb06\uff10-\uff5a]"
)
# What would have to be escaped in JSON only lies between words, and so does all else when no word has it.
_BETWEEN = bytes(0x20 if byte < 0x20 or byte in b'"\\' else byte for byte in range(256))
_ALL_BETWEEN = _BETWEEN[:128] + b" " * 128


def fold_accents(text: str) -> str:
    """A text with its letters as they are typed without accents: ``Größe`` becomes ``Grosse``."""
    return text if text.isascii() else re.sub(_FOLDABLE, _folded, text)


def bare(words: bytes, beyond: bytes) -> bytes:
    """A text's UTF-8 as the engine cuts it the fastest: its words without accents, nothing to escape.

    ``beyond`` is what of it is not ASCII: few different characters in any text, most of which only lie
    between words. One at a time is found faster than any of them.
    """
    is_plain = True
    for char in set(beyond.decode()):
        spelled = _SPELLINGS[char]
        if spelled is None:
            is_plain = False
        elif spelled:
            words = words.replace(char.encode(), spelled)
    return words.translate(_ALL_BETWEEN if is_plain else _BETWEEN)


def _folded(found: re.Match[str]) -> str:
    return (_SPELLINGS[found[0]] or found[0].encode()).decode()


class _Spellings(dict[str, bytes | None]):
    """What stands for a character in a word of ASCII, asked for once.

    None when a word may have the character itself, nothing when no word has it.
    """

    def __missing__(self, char: str) -> bytes | None:
        words = _engine().analyze(char)
        spelled = "".join(words).encode()
        # Some fold to more than letters, "⑴" to "(1)"; these would fall apart, and stay as they are.
        self[char] = spelled if not words or (spelled.isascii() and spelled.isalnum()) else None
        return self[char]


_SPELLINGS = _Spellings()


@cache
def _engine() -> tantivy.TextAnalyzer:
    return (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
        .build()
    )
