"""Languages of queries: detection, stop words, other forms of a word, and weights of CJK characters.

The stop words and stemmers of languages other than English are those of Tantivy (Snowball). The index
contains words, not stems. The forms of a word are therefore generated: its stem with every ending of the
language in ``endings.txt``, and for English by rules. They are used only if no message contains the words as
typed. A generated form that is not a word costs one dictionary lookup and matches nothing, so the rules may
be rough.

A question in Chinese, Japanese or Korean is one run of characters without spaces. Pairs of function words
say little about its subject, but are rare in a history that is mostly English.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from backscroll.index.analysis import to_nfc

if TYPE_CHECKING:
    import tantivy


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
    if sum(map(_is_cyrillic, words)) * 2 > len(words):
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


def _is_cyrillic(word: str) -> bool:
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
    for line in files("backscroll.index").joinpath("endings.txt").read_text("utf-8").splitlines():
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


_MIN_LETTERS = 3  # shorter words have no useful inflections
_VOWELS = "aeiou"


def inflections(word: str, language: str = ENGLISH) -> tuple[str, ...]:
    """Return a lower-case word without accents as it is, then its other forms.

    Queries in other languages contain English terms, so the English forms are always included.
    """
    if len(word) < _MIN_LETTERS or not word.isalpha():
        return (word,)
    if _is_cyrillic(word):
        return (word, *forms_with_stem(word, RUSSIAN))
    others = forms_with_stem(word, language) if language not in (ENGLISH, RUSSIAN) else ()
    return tuple(dict.fromkeys([word, *_english_forms(word), *others]))


def _english_forms(word: str) -> Iterator[str]:
    if word.isascii():
        for base in [base for base in _bases(word) if len(base) >= _MIN_LETTERS] or [word]:
            yield from _inflect(base)


def _bases(word: str) -> Iterator[str]:
    """Yield the words that the word may be a form of."""
    if word.endswith(("ies", "ied")):
        yield f"{word[:-3]}y"
    if word.endswith("s") and not word.endswith("ss"):
        yield word[:-1]
        if word.endswith("es"):
            yield word[:-2]
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            stem = word.removesuffix(suffix)
            yield stem
            yield f"{stem}e"
            if _ends_doubled(stem):
                yield stem[:-1]


def _inflect(base: str) -> Iterator[str]:
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


def _ends_doubled(stem: str) -> bool:
    return len(stem) > _MIN_LETTERS and stem[-1] == stem[-2] and stem[-1] not in _VOWELS


_FUNCTION_WEIGHT = 0.2  # both characters belong to function words
_MIXED_WEIGHT = 0.6
# Strings, compiled on first use: most queries contain no such text.
_HIRAGANA = "[\u3041-\u309f]"  # Japanese inflections and particles; names and nouns rarely use it
_CHINESE_PARTICLES = frozenset(
    "的了吗呢吧啊是在把被和与就也都还又很更最要会能让给用从到对向为以于跟着过得地之其这那"
)
_CHINESE_WORDS = (
    "为什么|怎么样|怎么|什么|如何|哪些|哪个|哪里|多少|我们|你们|他们|大家|当时|上次|之前|之后|后来|最后|这个|那个|这些|那些"
    "|是不是|有没有|可以|因为|所以|如果|但是|时候|一下|一个|一些|没有|已经|还是|以及|问题|办法|解决"
)
_KOREAN_WORDS = (
    "왜|어떻게|어떤|무엇|무슨|어디|언제|우리|저희|이유|문제|때문|해결|에서|에게|으로|까지|부터|하고|했던|하는|되는|했나|되었|이었|였던"
    "|나요|가요|까요|습니까|습니다|했지|였지|었지|[은는이가을를의에도로와과]$"
)


def weighted_pairs(run: str) -> list[tuple[str, float]]:
    """Return every two adjacent characters of a run, and how much each pair says about the subject."""
    if len(run) == 1:
        return [(run, 1.0)]
    is_function = _function_characters(run)
    weights = (1.0, _MIXED_WEIGHT, _FUNCTION_WEIGHT)
    pairs = map("".join, pairwise(run))
    return [(pair, weights[sum(both)]) for pair, both in zip(pairs, pairwise(is_function), strict=True)]


def _function_characters(run: str) -> list[bool]:
    """Return for each character whether it belongs to a function word."""
    if re.search(_HIRAGANA, run):
        return [re.match(_HIRAGANA, char) is not None for char in run]
    is_function = [char in _CHINESE_PARTICLES for char in run]
    for pattern in (_CHINESE_WORDS, _KOREAN_WORDS):
        for match in re.finditer(pattern, run):
            is_function[match.start() : match.end()] = [True] * len(match[0])
    return is_function
