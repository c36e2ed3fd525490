"""Words as people and programs write them.

The index cuts text where a letter or digit meets anything else, so
``snake_case_name`` and ``path/to/file.py`` fall apart by themselves and are
found whole as phrases. What that cannot do is done here: the words inside
``parseHTTPRequest``, and Chinese, Japanese, Korean, Thai and others, which are
written without spaces and are found by pairs of characters.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

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

MAX_WORD_BYTES = 255  # bytes; a longer run of letters is data, and is not in the dictionary

_CJK = (  # and Thai, Lao, Burmese and Khmer, which have no spaces between words either
    "[\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)
_LONGEST_COMPOUND = 64
_SURELY_SHORT = 200  # a letter may grow by a few bytes when its case changes
_SMALL = r"[^\WA-Z\d_]"
_PIECE = re.compile(rf"[A-Z]{{2,}}s(?!{_SMALL})|[A-Z]+(?=[A-Z]{_SMALL})|[A-Z]?{_SMALL}+|[A-Z]+|\d+")

_ASCII = bytes(range(128))
# First bytes of the characters that need neither joining nor cutting: Latin, dashes, quotes, arrows.
_SIMPLE = bytes([*range(0xC0), *range(0xC2, 0xCC), 0xE2])
_EMOJI_JOINERS = "\u200d\ufe0e\ufe0f"

# Every byte as the kind of character it belongs to. Beyond ASCII all count as small letters: a dash
# among them only makes a longer compound, of which the pieces are the same.
_KINDS = bytes(
    ord("A") if 65 <= byte <= 90
    else ord("0") if 48 <= byte <= 57
    else ord("a") if 97 <= byte <= 122 or byte >= 128
    else ord(" ")
    for byte in range(256)
)  # fmt: skip
_ANY_KIND = bytes(byte if byte == ord(" ") else ord("a") for byte in range(256))
_STEP = 5
_LONG_RUN = b"a" * (_SURELY_SHORT // _STEP)  # of a longer one, by steps
# Where words meet inside an identifier, up to its end: a capital after a letter, with a small letter on
# either side of it, or three digits after a letter. What a pattern begins with is found the fastest, so that
# is what is rare, and what comes before it is asked for afterwards.
_SEAMS = (re.compile(rb"A(?<=[aA]A)(?:(?=a)|(?<=aA))[aA0]*"), re.compile(rb"000(?<=[aA]000)[aA0]*"))


class AnalyzedText(Struct, frozen=True, gc=False):
    """A text as the index takes it."""

    words: bytes  # to be cut into words
    parts: str  # what compound identifiers are made of
    pairs: str  # characters of languages without spaces, two by two
    is_odd: bool  # holds something that the dictionary does not have as it is written
    beyond: bytes  # what of the words is not ASCII
    has_long_run: bool  # may have a word that is too long for the dictionary


def to_nfc(text: str) -> str:
    """The same text as it can be stored: half characters replaced, accents joined to their letters."""
    if text.isascii():
        return text
    text = text.encode("utf-8", "replace").decode()
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def analyze(text: str | bytes) -> AnalyzedText:
    """Everything that a text is found by. Whoever has its UTF-8 at hand gives that."""
    raw, is_odd = (text, False) if isinstance(text, bytes) else _encoded(text)
    beyond = non_ascii_bytes(raw)
    pairs = ""
    if beyond and beyond.translate(None, _SIMPLE) and not all(map(_stands_alone, set(beyond.decode()))):
        written = raw.decode()
        words = to_nfc(written)
        is_odd = is_odd or words != written
        words, runs = extract_cjk(words)
        if runs:
            joined = [unicodedata.normalize("NFKC", run) for run in runs]
            is_odd = is_odd or joined != runs
            pairs = " ".join(pair for run in joined for pair in bigrams(run))
        raw = words.encode()
        beyond = non_ascii_bytes(raw)
    kinds = raw.translate(_KINDS)
    compounds = _compounds(raw, kinds)
    parts = " ".join(sorted(set().union(*map(split_identifier, compounds)))) if compounds else ""
    is_long = len(kinds) > _SURELY_SHORT and _has_long_run(kinds)
    return AnalyzedText(raw, parts, pairs, is_odd or is_long, beyond, is_long)


@cache
def _stands_alone(char: str) -> bool:
    """Whether a character needs neither joining to another nor cutting: emoji and what else is no letter."""
    is_sign = unicodedata.category(char)[0] in "SPZ" or char in _EMOJI_JOINERS
    return is_sign and unicodedata.normalize("NFC", char) == char and not _cjk_runs(char)


def non_ascii_bytes(raw: bytes) -> bytes:
    """What of a text's UTF-8 is not ASCII."""
    return b"" if raw.isascii() else raw.translate(None, _ASCII)


def _encoded(text: str) -> tuple[bytes, bool]:
    """A text's UTF-8, and whether half characters had to be replaced for it."""
    try:
        return text.encode(), False
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace"), True


def extract_cjk(text: str) -> tuple[str, list[str]]:
    """A text without its runs of Chinese, Japanese and Korean, and those runs."""
    runs = _cjk_runs(text)
    return (re.sub(_CJK, " ", text), runs) if runs else (text, runs)


def split_cjk(text: str) -> list[str]:
    """The pieces of a text in order: every second one is a run of Chinese, Japanese or Korean."""
    return [text] if text.isascii() else re.split(f"({_CJK})", text)


def has_cjk_pair(text: str) -> bool:
    """Whether two characters of Chinese, Japanese or Korean stand side by side."""
    return any(len(run) > 1 for run in _cjk_runs(text))


def _cjk_runs(text: str) -> list[str]:
    # The pattern takes a while to be made ready; whoever searches for plain words need not wait for it.
    return [] if text.isascii() else re.findall(_CJK, text)


def bigrams(run: str) -> Iterator[str]:
    """Every two neighbours, then the last character by itself: each character begins one of them."""
    yield from map(str.__add__, run, run[1:])
    yield run[-1:]


def _compounds(raw: bytes, kinds: bytes) -> set[bytes]:
    """The identifiers in a text that have words inside them."""
    found: set[bytes] = set()
    for seam in _SEAMS:
        first = seam.search(kinds)  # most texts have none, and this says so the fastest
        if first is None:
            continue
        for match in seam.finditer(kinds, first.start()):
            place, end = match.span()
            start = kinds.rfind(b" ", 0, place) + 1
            if end - start <= _LONGEST_COMPOUND:
                found.add(raw[start:end])
    return found


@lru_cache(maxsize=1 << 16)
def split_identifier(compound: bytes) -> tuple[str, ...]:
    """``parseHTTPRequest`` gives parse, HTTP and Request; a plain word gives nothing."""
    pieces: list[str] = _PIECE.findall(compound.decode())
    if len(pieces) < 2 or not _are_words(pieces):
        return ()
    return tuple(piece for piece in pieces if len(piece) > 1)


def _are_words(pieces: list[str]) -> bool:
    """Whether pieces are words, some with a number; many short ones are a hash or some other data."""
    letters = [piece for piece in pieces if not piece[0].isdigit()]
    is_named_number = len(pieces) == 2 and not pieces[0][0].isdigit()
    return is_named_number or (len(letters) > 0 and sum(map(len, letters)) >= 3 * len(letters))


def _has_long_run(kinds: bytes) -> bool:
    # In steps it is gone through sooner, and hardly any text has so many characters of words in a row then.
    if _LONG_RUN not in kinds[::_STEP].translate(_ANY_KIND):
        return False
    space, end = -1, len(kinds) - _SURELY_SHORT - 1
    try:
        while space < end:
            space = kinds.rindex(b" ", space + 1, space + _SURELY_SHORT + 2)
    except ValueError:
        return True
    return False
