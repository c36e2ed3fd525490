"""Tokenization of prose and code.

The index splits text at every character that is not a letter or digit. So
``snake_case_name`` and ``path/to/file.py`` become several tokens and match as
phrases. This module covers what that split misses: the subwords of
``parseHTTPRequest``, and scripts without spaces (Chinese, Japanese, Korean, Thai
and others), which are indexed as bigrams. "CJK" below means all of these scripts.
"""

import re
import unicodedata
from functools import cache, lru_cache
from itertools import chain
from typing import Literal

from msgspec import Struct

__all__ = [
    "MAX_WORD_BYTES",
    "AnalyzedText",
    "analyze",
    "bigrams",
    "extract_cjk",
    "has_cjk_pair",
    "non_ascii_bytes",
    "split_cjk",
    "split_identifier",
    "to_nfc",
]

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
