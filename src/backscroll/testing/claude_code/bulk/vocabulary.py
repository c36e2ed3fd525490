"""The words of a made history: common ones everywhere, rare ones only in a part of it."""

from itertools import accumulate
from random import Random

__all__ = ["Words", "escaped"]

_PLAIN = """
    the to of a and in is it for that on with as this be are not from by at or an if we you can will
    all has have but when file line code test error value type name data return function class
    import self string list key path read write call result check update change fix add remove set
    get run build server client request response user message session table row column index query
    search parser timetable ferry harbour ticket module package version config option default branch
    commit merge review schema field number object
"""
_SYLLABLES = "ka lo mi tar sen vi dor pel ra nu bex qui fo gan hel jo wyn zet mor sta eb ich ul an or"
_COMMON = 3000
_RARE = 5000
_TABLE = 1 << 17


class Words:
    """Words without end, by Zipf's law: the n-th of a language is met about 1/n as often as the first."""

    def __init__(self, seed: int, chapter: int = 0) -> None:
        everywhere, here = Random(f"words:{seed}"), Random(f"words:{seed}:{chapter}")
        words = [*_PLAIN.split(), *_invented(everywhere, _COMMON), *_invented(here, _RARE)]
        weights = list(accumulate(1 / (rank + 2) for rank in range(len(words))))
        self._rng, self._at = here, 0
        self._table = here.choices(words, cum_weights=weights, k=_TABLE)

    def take(self, count: int) -> list[str]:
        """The next words."""
        if self._at + count > _TABLE:
            self._table, self._at = self._rng.choices(self._table, k=_TABLE), 0
        self._at += count
        return self._table[self._at - count : self._at]

    def names(self, count: int) -> list[str]:
        """Words fit for the names of things, at least one."""
        return [word for word in self.take(count * 2) if len(word) > 3][:count] or ["ferry"]


def escaped(line: str) -> bytes:
    """A line as it stands inside a JSON string."""
    return line.replace('"', '\\"').encode()


def _invented(rng: Random, count: int) -> list[str]:
    syllables = _SYLLABLES.split()
    return ["".join(rng.choices(syllables, k=rng.randrange(2, 5))) for _ in range(count)]
