"""Pools of random text. All text is already escaped for JSON, so that a line is a join of bytes."""

import base64
from bisect import bisect_right
from itertools import accumulate
from random import Random

from tests.builders.claude_code.bulk.command_output import command_output_lines, search_output_lines
from tests.builders.claude_code.bulk.source_code import source_code_lines
from tests.builders.claude_code.bulk.vocabulary import Vocabulary, escape_json

_SENTENCE_ENDS = (*".........::?", " — «fine».")
_SENTENCE_TEMPLATES = (
    "Let me look at the {0} first.",
    "Now I will {0} the {1} and run the tests again.",
    "The {0} is there, but the {1} of the {0} is not what the {2} asks for.",
    "All tests pass. The {0} now uses the {1}.",
    "- `{0}_{1}` in `src/{2}.py`",
    "I see the problem: {0} returns {1} before the {2} is read.",
)


class LinePool:
    """Long escaped text. Excerpts of it start at the beginning of a line."""

    def __init__(self, lines: list[bytes]) -> None:
        self._joined = b"\\n".join(lines)
        self._starts = [0, *accumulate(len(line) + 2 for line in lines)][:-1]

    def __len__(self) -> int:
        return len(self._starts)

    def random_excerpt(self, rng: Random, size: int) -> bytes:
        """Return an excerpt of about ``size`` bytes that starts at a random line."""
        return self.excerpt(int(rng.random() * len(self._starts)), size)

    def excerpt(self, line: int, size: int) -> bytes:
        """Return an excerpt that starts at the given line.

        It can be a few bytes shorter than ``size``, so that it ends with a complete
        character and a complete escape.
        """
        start = self._starts[line]
        if start + size >= len(self._joined):
            start = 0
        if size >= len(self._joined):
            repeated = (self._joined + b"\\n") * (size // len(self._joined))
            return repeated + self.excerpt(0, size % len(self._joined))
        return cut_escaped(self._joined[start : start + max(size, 2) + 1], max(size, 2))

    def lines(self, line: int, count: int) -> bytes:
        """Return ``count`` complete lines, starting at the given line."""
        last = min(line + count, len(self._starts) - 1)
        return self._joined[self._starts[line] : self._starts[last] - 2] if last > line else b""

    def line_after(self, line: int, size: int) -> int:
        """Return the line that is ``size`` bytes after the start of the given line."""
        return bisect_right(self._starts, self._starts[line] + size) - 1


def cut_escaped(text: bytes, size: int) -> bytes:
    """Return the first ``size`` bytes without an incomplete character or escape at the end."""
    if len(text) <= size:
        return text
    while text[size] & 0xC0 == 0x80:
        size -= 1
    start = text[:size]
    escape = start.rfind(b"\\u", -5)
    if escape >= 0:
        return start[:escape]
    if start.endswith(b"\\") and (len(start) - len(start.rstrip(b"\\"))) % 2:
        return start[:-1]
    return start


class TextPools:
    """Pools of prose, source code with and without line numbers, command output and base64."""

    def __init__(
        self,
        seed: int,
        size: int,
        topic: int = 0,
        *,
        is_multilingual: bool = False,
        language: str | None = None,
    ) -> None:
        rng = Random(f"text:{seed}:{topic}")
        words = Vocabulary(seed, topic, is_multilingual=is_multilingual, language=language)
        self.prose = LinePool([_sentence(rng, words) for _ in range(size // 200)])
        code, numbered, self.file_starts = source_code_lines(rng, words, size)
        self.code, self.numbered = LinePool(code), LinePool(numbered)
        self.command_output = LinePool(command_output_lines(rng, words, size // 3, has_boxes=is_multilingual))
        self.search_output = LinePool(search_output_lines(rng, words, size // 8))
        self._base64 = base64.b64encode(rng.randbytes(900_000))

    def base64(self, rng: Random, size: int) -> bytes:
        """Return base64 text, for an image or a signature. A long text repeats itself."""
        start = rng.randrange(0, 600_000, 4)
        text = self._base64[start : start + size]
        if len(text) == size:
            return text
        return text + (self._base64 * (size // len(self._base64) + 1))[: size - len(text)]


def _sentence(rng: Random, words: Vocabulary) -> bytes:
    if rng.random() < 0.3:
        return escape_json(
            _SENTENCE_TEMPLATES[int(rng.random() * len(_SENTENCE_TEMPLATES))].format(*(words.names(3) * 3))
        )
    sentence = words.sentence(4 + int(rng.random() * 22))
    return escape_json(
        sentence[:1].upper() + sentence[1:] + _SENTENCE_ENDS[int(rng.random() * len(_SENTENCE_ENDS))]
    )
