"""Random words. Common words occur in the whole history, rare words only in one topic."""

from itertools import accumulate
from random import Random

from tests.builders.claude_code.bulk.languages import LanguageSentences

_ENGLISH_WORDS = """
    the to of a and in is it for that on with as this be are not from by at or an if we you can will
    all has have but when file line code test error value type name data return function class
    import self string list key path read write call result check update change fix add remove set
    get run build server client request response user message session table row column index query
    search parser timetable ferry harbour ticket module package version config option default branch
    commit merge review schema field number object
"""
_SYLLABLES = "ka lo mi tar sen vi dor pel ra nu bex qui fo gan hel jo wyn zet mor sta eb ich ul an or"
_COMMON_WORD_COUNT = 3000  # invented words, in addition to the English ones
_RARE_WORD_COUNT = 5000  # per topic
_MULTILINGUAL_RARE_WORD_COUNT = 90_000
_TABLE_SIZE = 1 << 17
_COMPOUND_NAME_SHARE = 0.29  # identifiers of several words
_FOREIGN_SENTENCE_SHARE = 0.35  # in a project whose language is not English


class Vocabulary:
    """Endless stream of words with Zipf's law: the frequency of the n-th word is about 1/n of the first."""

    def __init__(
        self, seed: int, topic: int = 0, *, is_multilingual: bool = False, language: str | None = None
    ) -> None:
        rare_count = _MULTILINGUAL_RARE_WORD_COUNT if is_multilingual else _RARE_WORD_COUNT
        common_rng, topic_rng = Random(f"words:{seed}"), Random(f"words:{seed}:{topic}")
        self._foreign = LanguageSentences(language, f"words:{seed}") if language else None
        self._words = [
            *_ENGLISH_WORDS.split(),
            *_invent_words(common_rng, _COMMON_WORD_COUNT),
            *_invent_words(topic_rng, rare_count, 5 if is_multilingual else 4),
        ]
        self._weights = list(accumulate(1 / (rank + 2) for rank in range(len(self._words))))
        self._rng, self._position = topic_rng, _TABLE_SIZE
        self._table: list[str] = []

    def take(self, count: int) -> list[str]:
        """Return the next words."""
        if self._position + count > _TABLE_SIZE:
            self._table = self._rng.choices(self._words, cum_weights=self._weights, k=_TABLE_SIZE)
            self._position = 0
        self._position += count
        return self._table[self._position - count : self._position]

    def names(self, count: int) -> list[str]:
        """Return up to ``count`` identifiers, at least one. Some of them consist of several words."""
        words = [word for word in self.take(count * 2) if len(word) > 3][:count] or ["ferry"]
        return [
            self._compound_name(word) if self._rng.random() < _COMPOUND_NAME_SHARE else word for word in words
        ]

    def sentence(self, count: int) -> str:
        """Return a sentence of ``count`` words without punctuation, or one in the language of the project."""
        if self._foreign is not None and self._rng.random() < _FOREIGN_SENTENCE_SHARE:
            return self._foreign.sentence(count)
        return " ".join(self.take(count))

    def _compound_name(self, word: str) -> str:
        """Return ``word`` and one or two others as camelCase, PascalCase or snake_case."""
        rng = self._rng
        words = [word, *self.take(1 if rng.random() < 0.7 else 2)]
        match int(rng.random() * 10):
            case 0 | 1 | 2 | 3:
                return words[0] + "".join(map(str.capitalize, words[1:]))
            case 4 | 5:
                return "".join(map(str.capitalize, words))
            case _:
                return "_".join(words)


def escape_json(line: str) -> bytes:
    """Escape a line for a JSON string."""
    return line.replace('"', '\\"').encode()


def _invent_words(rng: Random, count: int, max_syllables: int = 4) -> list[str]:
    syllables = _SYLLABLES.split()
    return ["".join(rng.choices(syllables, k=rng.randrange(2, max_syllables + 1))) for _ in range(count)]
