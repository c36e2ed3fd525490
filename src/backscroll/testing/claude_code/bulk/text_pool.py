"""Text in any amount: invented words in the proportions of real ones, ready to be put into JSON.

Everything handed out is already escaped, so that a line is put together by
joining bytes.
"""

import base64
from bisect import bisect_right
from itertools import accumulate
from random import Random

from backscroll.testing.claude_code.bulk.command_output import listed_lines, printed_lines
from backscroll.testing.claude_code.bulk.source_code import program_lines
from backscroll.testing.claude_code.bulk.vocabulary import Words, escaped

__all__ = ["Pool", "Text"]

_ENDS = (".", ".", ".", ".", ":", "?", " — «fine».")
_PHRASES = (
    "Let me look at the {0} first.",
    "Now I will {0} the {1} and run the tests again.",
    "The {0} is there, but the {1} of the {0} is not what the {2} asks for.",
    "All tests pass. The {0} now uses the {1}.",
    "- `{0}_{1}` in `src/{2}.py`",
    "I see the problem: {0} returns {1} before the {2} is read.",
)


class Pool:
    """A long escaped text of which any piece can be had that begins with a line."""

    def __init__(self, lines: list[bytes]) -> None:
        self._joined = b"\\n".join(lines)
        self._starts = [0, *accumulate(len(line) + 2 for line in lines)][:-1]

    def __len__(self) -> int:
        return len(self._starts)

    def cut(self, rng: Random, size: int) -> bytes:
        """A piece of that many bytes, or one to three fewer so as to cut no character and no escape."""
        return self.piece(int(rng.random() * len(self._starts)), size)

    def piece(self, line: int, size: int) -> bytes:
        """The same, from this line on."""
        begin = self._starts[line]
        if begin + size >= len(self._joined):
            begin = 0
        if size >= len(self._joined):
            return (self._joined + b"\\n") * (size // len(self._joined)) + self.piece(
                0, size % len(self._joined)
            )
        end = begin + max(size, 2)
        while self._joined[end] & 0xC0 == 0x80:
            end -= 1
        piece = self._joined[begin:end]
        cut = piece.rfind(b"\\u", -5)
        if cut >= 0:
            return piece[:cut]
        if piece.endswith(b"\\") and (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            return piece[:-1]
        return piece

    def lines(self, line: int, count: int) -> bytes:
        """So many whole lines."""
        last = min(line + count, len(self._starts) - 1)
        return self._joined[self._starts[line] : self._starts[last] - 2] if last > line else b""

    def line_at(self, line: int, size: int) -> int:
        """The line that is that many bytes further on."""
        return bisect_right(self._starts, self._starts[line] + size) - 1


class Text:
    """Prose, the files of programs with and without line numbers, what commands print, and base64."""

    def __init__(self, seed: int, size: int, chapter: int = 0) -> None:
        rng = Random(f"text:{seed}:{chapter}")
        words = Words(seed, chapter)
        self.prose = Pool([_sentence(rng, words) for _ in range(size // 200)])
        code, numbered, self.files = program_lines(rng, words, size)
        self.code, self.numbered = Pool(code), Pool(numbered)
        self.printed = Pool(printed_lines(rng, words, size // 3))
        self.listed = Pool(listed_lines(rng, words, size // 8))
        self._base64 = base64.b64encode(rng.randbytes(900_000))

    def base64(self, rng: Random, size: int) -> bytes:
        """Letters of an image or a signature; a long one repeats itself."""
        start = rng.randrange(0, 600_000, 4)
        piece = self._base64[start : start + size]
        if len(piece) == size:
            return piece
        return piece + (self._base64 * (size // len(self._base64) + 1))[: size - len(piece)]


def _sentence(rng: Random, words: Words) -> bytes:
    if rng.random() < 0.3:
        return escaped(_PHRASES[int(rng.random() * len(_PHRASES))].format(*words.take(3)))
    said = " ".join(words.take(4 + int(rng.random() * 22)))
    return escaped(said.capitalize() + _ENDS[int(rng.random() * len(_ENDS))])
