"""Language of a query by its unknown words.

Two or three words contain no stop words that show their language. But if the index contains no
English form of a word and has a form of it in another language, the query is in that language.
"""

from collections.abc import Callable

from msgspec.structs import replace

from backscroll.index.engine.schema import tokens_of
from backscroll.index.query.parser import Query, Word
from backscroll.index.text.inflections import inflections
from backscroll.index.text.languages import ENGLISH, LATIN_LANGUAGES, forms_with_stem

__all__ = ["with_language"]

_MIN_LETTERS = 4
_MAX_WORDS = 8  # each costs about 1 ms


def with_language(query: Query, is_indexed: Callable[[str], bool]) -> Query:
    """Return the query in the language in which most of its unknown words have other forms in the index."""
    has_stop_words = len(query.content_words) < len(query.words)  # they show the language
    if query.language != ENGLISH or has_stop_words:
        return query
    unknown = [word for word in _words(query) if not any(map(is_indexed, inflections(word)))][:_MAX_WORDS]
    if not unknown:
        return query

    def known_count(language: str) -> int:
        return sum(any(map(is_indexed, forms_with_stem(word, language))) for word in unknown)

    counts = {language: known_count(language) for language in LATIN_LANGUAGES}
    best = max(LATIN_LANGUAGES, key=lambda language: counts[language])
    return replace(query, language=best) if counts[best] else query


def _words(query: Query) -> list[str]:
    terms = [term for clause in query.content_words for term in clause.any_of]
    words = [term.text for term in terms if isinstance(term, Word) and not term.is_prefix]
    tokens = [token for word in words for token in tokens_of(word)]
    return [token for token in tokens if token.isascii() and token.isalpha() and len(token) >= _MIN_LETTERS]
