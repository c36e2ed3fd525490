"""Text in any amount: invented words in the proportions of real ones, ready to be put into JSON.

Everything handed out is already escaped, so that a line is put together by
joining bytes.
"""

import base64
from itertools import accumulate, islice
from random import Random

__all__ = ["Pool", "Text"]

_PLAIN = """
    the to of a and in is it for that on with as this be are not from by at or an if we you can will
    all has have but when file line code test error value type name data return function class
    import self string list key path read write call result check update change fix add remove set
    get run build server client request response user message session table row column index query
    search parser timetable ferry harbour ticket module package version config option default branch
    commit merge review schema field number object
"""
_SYLLABLES = "ka lo mi tar sen vi dor pel ra nu bex qui fo gan hel jo wyn zet mor sta eb ich ul an or"
_ENDS = (".", ".", ".", ":", "?", " — «fine».")
_CODE = (
    "",
    "{0}def {1}_{2}({3}: str) -> {4}:",
    '{0}{1} = "{2} {3} {4}"',
    "{0}return {1}.{2}({3}, {4}={5})",
    "{0}# {1} {2} {3} {4}, as the {2} of the {1} wants it; {3} {5}",
    "src/{1}/{2}.py:{5}: {3} {4}",
)


class Pool:
    """A long escaped text of which any piece can be had that begins with a line."""

    def __init__(self, lines: list[bytes]) -> None:
        self._joined = b"\\n".join(lines)
        self._starts = [0, *accumulate(len(line) + 2 for line in lines)][:-1]

    def cut(self, rng: Random, size: int) -> bytes:
        """A piece of that many bytes, or one to three fewer so as to cut no character and no escape."""
        begin = self._starts[int(rng.random() * len(self._starts))]
        if begin + size >= len(self._joined):
            begin = 0
        if size >= len(self._joined):
            return (self._joined + b"\\n") * (size // len(self._joined)) + self.cut(
                rng, size % len(self._joined)
            )
        end = begin + max(size, 2)
        while self._joined[end] & 0xC0 == 0x80:
            end -= 1
        piece = self._joined[begin:end]
        if piece.endswith(b"\\") and (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            return piece[:-1]
        return piece


class Text:
    """Prose, code, code with line numbers, and base64, of one seed."""

    def __init__(self, seed: int, size: int) -> None:
        self._rng = rng = Random(f"text:{seed}")
        syllables = _SYLLABLES.split()
        words = _PLAIN.split() + [
            "".join(rng.choices(syllables, k=rng.randrange(2, 5))) for _ in range(12_000)
        ]
        # Zipf's law: the n-th word of a language is met about 1/n as often as the first.
        weights = list(accumulate(1 / (rank + 2) for rank in range(len(words))))
        table = rng.choices(words, cum_weights=weights, k=1 << 17)
        self._words = iter(rng.choices(table, k=size // 7))
        prose = [self._prose() for _ in range(size // 200)]
        code = [self._code() for _ in range(size // 80)]
        numbered = [f"{number % 2000 + 1:>6}→".encode() + line for number, line in enumerate(code)]
        self.prose, self.code, self.numbered = Pool(prose), Pool(code), Pool(numbered)
        self._base64 = base64.b64encode(rng.randbytes(900_000))

    def base64(self, rng: Random, size: int) -> bytes:
        """Letters of an image or a signature; a long one repeats itself."""
        start = rng.randrange(0, 600_000, 4)
        piece = self._base64[start : start + size]
        if len(piece) == size:
            return piece
        return piece + (self._base64 * (size // len(self._base64) + 1))[: size - len(piece)]

    def _prose(self) -> bytes:
        said = " ".join(islice(self._words, 4 + int(self._rng.random() * 22)))
        return _escaped(said.capitalize() + _ENDS[int(self._rng.random() * len(_ENDS))])

    def _code(self) -> bytes:
        one, two, three, four = islice(self._words, 4)
        number = int(self._rng.random() * 9999)
        indent = "    " * (number % 4)
        return _escaped(_CODE[number % len(_CODE)].format(indent, one, two, three, four, number))


def _escaped(line: str) -> bytes:
    return line.replace('"', '\\"').encode()
