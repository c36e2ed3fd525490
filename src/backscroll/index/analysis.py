"""Text analysis, shared by indexing, queries and highlights: tokenization and normalization.

The index splits text at every character that is not a letter or digit. So ``snake_case_name`` and
``path/to/file.py`` become several tokens and match as phrases. `analyze` covers what that split misses: the
subwords of ``parseHTTPRequest``, and scripts without spaces (Chinese, Japanese, Korean, Thai and others),
which are indexed as bigrams. "CJK" below means all of these scripts.

`normalize_words` prepares text for the index: lower case without accents. Tantivy can do the same word by
word, but that costs a third of the indexing time. Here one translation table handles ASCII, and the few
distinct other characters of a text are replaced one by one, by what Tantivy itself would produce.
`fold_in_place` keeps every character position and is for highlights.
"""

import re
import unicodedata
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    import tantivy


MAX_WORD_BYTES = 255  # a longer run of letters is data; the term dictionary does not contain it
_CJK = (  # including Thai, Lao, Burmese and Khmer, which have no spaces between words either
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)
_MAX_IDENTIFIER_BYTES = 64
_SAFE_WORD_BYTES = 200  # below `MAX_WORD_BYTES`: a change of case may add a few bytes
_LOWER = r"[^\WA-Z\d_]"
_SUBWORD = rf"[A-Z]{{2,}}s(?!{_LOWER})|[A-Z]+(?=[A-Z]{_LOWER})|[A-Z]?{_LOWER}+|[A-Z]+|\d+"
_ASCII = bytes(range(128))
# Leading bytes of characters that need no normalization and no bigrams: Latin, dashes, quotes, arrows.
_SIMPLE_LEADING_BYTES = bytes([*range(0xC0), *range(0xC2, 0xCC), 0xE2])
_EMOJI_VARIATIONS = "\ufe0e\ufe0f"
_JAMO = frozenset(map(chr, range(0x1100, 0x1200)))  # parts of Hangul syllables, which NFC composes
# Maps every byte to its character class: "A", "a", "0" or " ". All bytes outside ASCII count as lower case.
# A dash among them only lengthens an identifier; its subwords stay the same.
_CLASSES = bytes(
    ord("A") if 65 <= byte <= 90
    else ord("0") if 48 <= byte <= 57
    else ord("a") if 97 <= byte <= 122 or byte >= 128
    else ord(" ")
    for byte in range(256)
)  # fmt: skip
_WORD_OR_SPACE = bytes(byte if byte == ord(" ") else ord("a") for byte in range(256))
_SAMPLE_STEP = 5
_LONG_RUN_SAMPLE = b"a" * (_SAFE_WORD_BYTES // _SAMPLE_STEP)
# Subword boundaries, matched up to the end of the identifier: a capital after a letter with a lower-case
# letter before or after it, or three digits after a letter. Each pattern starts with its rarest part, which
# the regex engine finds fastest; the part before it is a lookbehind.
_SUBWORD_BOUNDARIES = (rb"A(?<=[aA]A)(?:(?=a)|(?<=aA))[aA0]*", rb"000(?<=[aA]000)[aA0]*")


class AnalyzedText(Struct, frozen=True, gc=False):
    """A text prepared for the index."""

    words: bytes  # UTF-8, NFC, without CJK runs
    subwords: str  # parts of compound identifiers
    cjk_bigrams: str
    is_irregular: bool  # the term dictionary does not contain the text as written
    non_ascii: bytes  # the bytes of `words` outside ASCII
    has_long_word: bool  # may contain a word longer than `MAX_WORD_BYTES`


def to_nfc(text: str) -> str:
    """Return the text in NFC with lone surrogates replaced."""
    if text.isascii():
        return text
    text = text.encode("utf-8", "replace").decode()
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def analyze(text: str | bytes) -> AnalyzedText:
    """Extract everything that the index stores of a text. Pass UTF-8 if it is available."""
    raw, is_irregular = (text, False) if isinstance(text, bytes) else _encode(text)
    non_ascii = non_ascii_bytes(raw)
    cjk_bigrams = ""
    if non_ascii and non_ascii.translate(None, _SIMPLE_LEADING_BYTES):
        treatments = set(map(_treatment, set(non_ascii.decode())))
        if treatments != {"keep"}:
            original = raw.decode()
            words = to_nfc(original) if "compose" in treatments else original
            is_irregular = is_irregular or words != original
            words, runs = extract_cjk(words)
            normalized = [unicodedata.normalize("NFKC", run) for run in runs]
            is_irregular = is_irregular or normalized != runs
            cjk_bigrams = " ".join(chain.from_iterable(map(bigrams, normalized)))
            raw = words.encode()
            non_ascii = non_ascii_bytes(raw)
    classes = raw.translate(_CLASSES)
    identifiers = _compound_identifiers(raw, classes)
    subwords = " ".join(sorted(set().union(*map(split_identifier, identifiers)))) if identifiers else ""
    has_long_word = len(classes) > _SAFE_WORD_BYTES and _has_long_run(classes)
    return AnalyzedText(raw, subwords, cjk_bigrams, is_irregular or has_long_word, non_ascii, has_long_word)


@cache
def _treatment(char: str) -> Literal["keep", "extract", "compose"]:
    """Return what a text with this character needs: nothing, extraction of CJK runs, or NFC first."""
    may_combine = unicodedata.category(char)[0] == "M" and char not in _EMOJI_VARIATIONS
    if may_combine or char in _JAMO or unicodedata.normalize("NFC", char) != char:
        return "compose"
    return "extract" if _cjk_runs(char) else "keep"


def non_ascii_bytes(raw: bytes) -> bytes:
    """Return the bytes of UTF-8 text that are not ASCII."""
    return b"" if raw.isascii() else raw.translate(None, _ASCII)


def _encode(text: str) -> tuple[bytes, bool]:
    """Return the text as UTF-8, and whether lone surrogates were replaced."""
    try:
        return text.encode(), False
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace"), True


def extract_cjk(text: str) -> tuple[str, list[str]]:
    """Return the text with a space in place of each CJK run, and the runs."""
    pieces = split_cjk(text)
    return " ".join(pieces[::2]), pieces[1::2]


def split_cjk(text: str) -> list[str]:
    """Split a text into alternating pieces: other text, CJK run, other text, …"""
    return [text] if text.isascii() else re.split(f"({_CJK})", text)


def has_cjk_pair(text: str) -> bool:
    """Return whether the text contains two adjacent CJK characters."""
    return any(len(run) > 1 for run in _cjk_runs(text))


def _cjk_runs(text: str) -> list[str]:
    # The pattern is compiled on first use: compiling takes a while, and ASCII queries do not need it.
    return [] if text.isascii() else re.findall(_CJK, text)


def bigrams(run: str) -> list[str]:
    """Return every two adjacent characters, then the last one alone, so that each character starts one."""
    return [*map(str.__add__, run, run[1:]), run[-1:]]


@cache
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """Compile on first use: a search does not need these patterns."""
    return re.compile(pattern)


def _compound_identifiers(raw: bytes, classes: bytes) -> set[bytes]:
    """Return the identifiers in a text that contain subwords."""
    found: set[bytes] = set()
    for boundary in map(_compiled, _SUBWORD_BOUNDARIES):
        first = boundary.search(classes)  # the fastest check: most texts have none
        if first is None:
            continue
        for match in boundary.finditer(classes, first.start()):
            boundary_start, end = match.span()
            start = classes.rfind(b" ", 0, boundary_start) + 1
            if end - start <= _MAX_IDENTIFIER_BYTES:
                found.add(raw[start:end])
    return found


@lru_cache(maxsize=1 << 16)
def split_identifier(identifier: bytes) -> tuple[str, ...]:
    """Split ``parseHTTPRequest`` into parse, HTTP and Request. Return nothing for a simple word."""
    subwords: list[str] = re.findall(_SUBWORD, identifier.decode())
    if len(subwords) < 2 or not _are_words(subwords):
        return ()
    return tuple(subword for subword in subwords if len(subword) > 1)


def _are_words(subwords: list[str]) -> bool:
    """Return whether the parts are words, perhaps with a number. Many short parts are a hash or data."""
    alphabetic = [subword for subword in subwords if not subword[0].isdigit()]
    is_word_and_number = len(subwords) == 2 and not subwords[0][0].isdigit()
    return is_word_and_number or (len(alphabetic) > 0 and sum(map(len, alphabetic)) >= 3 * len(alphabetic))


def _has_long_run(classes: bytes) -> bool:
    # A sample of every fifth byte rules out nearly all texts at a fifth of the cost.
    if _LONG_RUN_SAMPLE not in classes[::_SAMPLE_STEP].translate(_WORD_OR_SPACE):
        return False
    space, end = -1, len(classes) - _SAFE_WORD_BYTES - 1
    try:
        while space < end:
            space = classes.rindex(b" ", space + 1, space + _SAFE_WORD_BYTES + 2)
    except ValueError:
        return True
    return False


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
    code + 32 if 65 <= code <= 90
    else code if 48 <= code <= 57 or 97 <= code <= 122 or code >= 128
    else 32
    for code in range(256)
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
