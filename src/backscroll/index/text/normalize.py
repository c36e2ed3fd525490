"""Texts as the engine has least to do with them: small letters without accents, and spaces.

The engine can do it word by word, at a third of the cost of indexing. All but few
letters are ASCII, which a table turns into what is wanted at once; the others are
few different ones in any text, and are replaced one by one, by what the engine
itself makes of them.
"""

import re
import unicodedata
from functools import cache

import tantivy

__all__ = ["fold_accents", "normalize_words"]

# Where the engine's table has letters and digits; a test asks it about every character there is.
_FOLDABLE = (
    "[\u00aa\u00b2\u00b3\u00b9\u00ba\u00c0-\u02af\u1d00-\u1dbf\u1e00-\u1eff\u2070-\u209c\u212b\u2183\u2184\u2460-\u24ff"
    "\u2776-\u2793\u2c60-\u2c7f\ua722-\ua7ff\ufb00-\ufb06\uff10-\uff5a\u0370-\u03ff\u1f00-\u1fff\u0401\u0451]"
)
# Letters that people type otherwise, and the engine knows nothing of.
_TYPED = {"İ": "i", "ς": "σ", "Ё": "е", "ё": "е"}
# What a word cannot have is a space, and what it has is small; beyond ASCII that is for others to say.
_WORDS = bytes(
    byte + 32 if 65 <= byte <= 90
    else byte if 48 <= byte <= 57 or 97 <= byte <= 122 or byte >= 128
    else 32
    for byte in range(256)
)  # fmt: skip
_PLAIN_WORDS = _WORDS[:128] + b" " * 128
_NOTHING = frozenset({b""})  # the spelling of signs that no word has


def fold_accents(text: str) -> str:
    """A text with its letters as they are typed without accents: ``Größe`` becomes ``Grosse``."""
    return text if text.isascii() else re.sub(_FOLDABLE, _folded, text)


def normalize_words(text: bytes, beyond: bytes) -> bytes:
    """A text's UTF-8 as words between spaces, in lower case and without accents.

    ``beyond`` is what of it is not ASCII: few different characters in any text, most of which only lie
    between words. One at a time is found faster than any of them.
    """
    if not beyond:
        return text.translate(_WORDS)
    chars = beyond.decode()
    # Often nearly all are the same: the arrow that follows a line's number where a file is shown.
    different = {chars[0], *chars.replace(chars[0], "")}
    if set(map(_SPELLINGS.__getitem__, different)) == _NOTHING:
        return text.translate(_PLAIN_WORDS)
    spelled = {char.encode(): _SPELLINGS[char] for char in different}
    for char, letters in spelled.items():
        if letters:
            text = text.replace(char, letters)
    if all(letters is not None and letters.isascii() for letters in spelled.values()):
        return text.translate(_PLAIN_WORDS)
    for char, letters in spelled.items():
        if letters == b"":
            text = text.replace(char, b" ")
    if chars != chars.lower():
        text = text.decode().lower().encode()
    return text.translate(_WORDS)


def _folded(found: re.Match[str]) -> str:
    spelled = _SPELLINGS[found[0]]
    return spelled.decode() if spelled else found[0]


class _Spellings(dict[str, bytes | None]):
    """What the engine has in the place of a character in a word, asked for once.

    Nothing when no word has it; None when a word has it as it is or as Python makes it small.
    """

    def __missing__(self, char: str) -> bytes | None:
        if typed := _TYPED.get(char) or _greek(char):
            self[char] = typed.encode()
            return self[char]
        folded = "".join(_engine(is_folding=True).analyze(char)).lower()
        # Some fold to more than letters, "⑴" to "(1)"; these would fall apart, and stay as they are.
        if not folded or (folded.isascii() and folded.isalnum()):
            self[char] = folded.encode()
            return self[char]
        small = "".join(_engine(is_folding=False).analyze(char))
        # Python may not know a letter yet, and makes another sigma at the end of a word.
        self[char] = None if f"a{char}".lower() == f"a{small}" else small.encode()
        return self[char]


_SPELLINGS = _Spellings()


def _greek(char: str) -> str | None:
    """A Greek letter without the accents it has; None for any other character."""
    parts = unicodedata.normalize("NFD", char)
    is_greek = "\u0370" <= parts[0] <= "\u03ff" and all(map(unicodedata.combining, parts[1:]))
    return parts[0].lower() if is_greek and len(parts) > 1 else None


@cache
def _engine(*, is_folding: bool) -> tantivy.TextAnalyzer:
    steps = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    return (steps.filter(tantivy.Filter.ascii_fold()) if is_folding else steps).build()
