"""Random words. Common words occur in the whole history, rare words only in one topic."""

from itertools import accumulate
from random import Random

__all__ = ["Vocabulary", "escape_json"]

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
_TABLE_SIZE = 1 << 17


class Vocabulary:
    """Endless stream of words with Zipf's law: the frequency of the n-th word is about 1/n of the first."""

    def __init__(self, seed: int, topic: int = 0) -> None:
        common_rng, topic_rng = Random(f"words:{seed}"), Random(f"words:{seed}:{topic}")
        words = [
            *_ENGLISH_WORDS.split(),
            *_invent_words(common_rng, _COMMON_WORD_COUNT),
            *_invent_words(topic_rng, _RARE_WORD_COUNT),
        ]
        weights = list(accumulate(1 / (rank + 2) for rank in range(len(words))))
        self._rng, self._position = topic_rng, 0
        self._table = topic_rng.choices(words, cum_weights=weights, k=_TABLE_SIZE)

    def take(self, count: int) -> list[str]:
        """Return the next words."""
        if self._position + count > _TABLE_SIZE:
            self._table, self._position = self._rng.choices(self._table, k=_TABLE_SIZE), 0
        self._position += count
        return self._table[self._position - count : self._position]

    def names(self, count: int) -> list[str]:
        """Return up to ``count`` words that can be identifiers, at least one."""
        return [word for word in self.take(count * 2) if len(word) > 3][:count] or ["ferry"]


def escape_json(line: str) -> bytes:
    """Escape a line for a JSON string."""
    return line.replace('"', '\\"').encode()


def _invent_words(rng: Random, count: int) -> list[str]:
    syllables = _SYLLABLES.split()
    return ["".join(rng.choices(syllables, k=rng.randrange(2, 5))) for _ in range(count)]
