"""Languages of queries: detection, stop words, and forms of a word with the same stem.

The stop words and stemmers of languages other than English are those of Tantivy (Snowball).
The index contains words, not stems. The forms of a word are therefore generated: its stem
with every ending of the language in ``endings.txt``.
"""

import re
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from backscroll.index.text.tokenize import to_nfc

if TYPE_CHECKING:
    import tantivy

__all__ = [
    "ENGLISH",
    "LATIN_LANGUAGES",
    "RUSSIAN",
    "detect_language",
    "forms_with_stem",
    "is_cyrillic",
    "is_stop_word",
]

ENGLISH, RUSSIAN = "english", "russian"
_MIN_STEM_LETTERS = 3
_ELISION = "['’-]"  # joins function words: qu'une, est-ce
_MIN_STOP_WORDS = 2  # that show a language; one may be a word of another language

# Optional next to other words: an answer rarely repeats the function words of the question.
_ENGLISH_STOP_WORD_LIST = """
    a about am an and any are as at be because been being but by can could did do does doing for from had has
    have having he her here him his how i if in into is it its just me my nor not of on or our she should so
    such than that the their them then there these they this those to too until very was we were what when
    where which while who whom why will with would you your
"""
_ENGLISH_STOP_WORDS = frozenset(_ENGLISH_STOP_WORD_LIST.split())
# Question words and spellings without accents, which the lists of Tantivy lack.
_MORE_STOP_WORD_LISTS = {
    "dutch": "hoe waarom wanneer welke welk wie wat waar",
    "french": """
        comment pourquoi quand quoi quel quelle quels quelles lequel laquelle lorsque depuis plus plusieurs
        comme afin donc alors entre jusqu aujourd chez sous vers où ou est ete etait etaient meme apres deja a
    """,
    "german": """
        beim dass warum wieso weshalb wofür wodurch womit welches wann wohin mal fur uber konnen
    """,
    "italian": "perché perche quando quale quali dove come piu cosa",
    "portuguese": "porque quê qual quais quando onde como nao ja voce voces ate tambem so sao foi era",
    RUSSIAN: "почему зачем какой какая какие какое каким какую где когда откуда это эта эти этот мы наш наши",
    "spanish": """
        cómo como cuál cual cuáles cuales cuándo cuando dónde donde por porque mas esta estan tambien asi
    """,
}
# Letters that few other languages have. Each counts like a stop word. Of equally likely languages, the first
# is chosen.
_TYPICAL_LETTERS = {
    "german": "äß",
    "french": "èêëîïùûœ",
    "portuguese": "ãõ",
    "spanish": "ñ",
    "italian": "ìò",
    "dutch": "",
}
LATIN_LANGUAGES = tuple(_TYPICAL_LETTERS)  # other than English
# Pairs of endings that change the stem.
_IRREGULAR_ENDINGS = {
    "french": (("al", "aux"), ("el", "elle"), ("eau", "eaux")),
    "portuguese": (("ao", "oes"), ("ao", "aos"), ("ao", "aes"), ("al", "ais"), ("el", "eis"), ("m", "ns")),
    "spanish": (("z", "ces"),),
}


def detect_language(words: Collection[str]) -> str:
    """Return the language of a query's lower-case words; English if it is not clear.

    Words in Cyrillic letters are Russian. Other languages are detected by their stop words.
    """
    if sum(map(is_cyrillic, words)) * 2 > len(words):
        return RUSSIAN
    if len(words) < _MIN_STOP_WORDS:
        return ENGLISH
    english = sum(word in _ENGLISH_STOP_WORDS for word in words)
    letters = frozenset("".join(words))
    counts = {
        language: sum(word not in _ENGLISH_STOP_WORDS and is_stop_word(word, language) for word in words)
        + len(letters.intersection(typical))
        for language, typical in _TYPICAL_LETTERS.items()
    }
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] >= max(_MIN_STOP_WORDS, english + 1) else ENGLISH


@lru_cache(maxsize=1 << 10)
def is_stop_word(word: str, language: str = ENGLISH) -> bool:
    """Return whether a lower-case word is a function word. English ones count in every language."""
    if word in _ENGLISH_STOP_WORDS:
        return True
    return language != ENGLISH and all(
        len(part) < 2 or part in _more_stop_words(language) or not _stop_word_filter(language).analyze(part)
        for part in re.split(_ELISION, to_nfc(word))
    )


def is_cyrillic(word: str) -> bool:
    """Return whether a word starts with a Cyrillic letter."""
    return "\u0400" <= word[:1] <= "\u04ff"


@lru_cache(maxsize=1 << 10)
def forms_with_stem(word: str, language: str) -> Sequence[str]:
    """Return the other words with the stem of a word. All words are lower-case and without accents."""
    stemmer = _stemmer(language)
    stem = "".join(stemmer.analyze(word))
    forms = [
        word.removesuffix(one) + other
        for pair in _IRREGULAR_ENDINGS.get(language, ())
        for one, other in (pair, pair[::-1])
        if word.endswith(one)
    ]
    if len(stem) >= _MIN_STEM_LETTERS:
        candidates = [stem + ending for ending in ("", *_endings()[language])]
        found = zip(candidates, stemmer.analyze(" ".join(candidates)), strict=True)
        forms += [form for form, form_stem in found if form_stem == stem]
    return tuple(form for form in dict.fromkeys(forms) if form != word and len(form) >= _MIN_STEM_LETTERS)


@cache
def _more_stop_words(language: str) -> frozenset[str]:
    return frozenset(_MORE_STOP_WORD_LISTS[language].split())


@cache
def _endings() -> dict[str, list[str]]:
    """Return the endings of each language in ``endings.txt``."""
    from importlib.resources import files  # start-up: it imports tempfile and zipfile, 3 % of a search

    endings: dict[str, list[str]] = {}
    language = ""
    for line in files("backscroll.index.text").joinpath("endings.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            language = line.strip("[]")
        elif line and not line.startswith("#"):
            endings.setdefault(language, []).extend(line.split())
    return endings


@cache
def _stop_word_filter(language: str) -> "tantivy.TextAnalyzer":
    import tantivy  # loaded on first use: highlights in the TUI do not need the search engine

    return _words().filter(tantivy.Filter.stopword(language)).build()


@cache
def _stemmer(language: str) -> "tantivy.TextAnalyzer":
    import tantivy  # loaded on first use, see above

    return _words().filter(tantivy.Filter.stemmer(language)).build()


def _words() -> "tantivy.TextAnalyzerBuilder":
    import tantivy  # loaded on first use, see above

    return tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
