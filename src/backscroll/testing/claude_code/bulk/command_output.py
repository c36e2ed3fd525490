"""What commands print: many lines of one kind, then many of another."""

from collections.abc import Iterator
from random import Random

from backscroll.testing.claude_code.bulk.vocabulary import Words, escaped

__all__ = ["listed_lines", "printed_lines"]

_AGAIN = 0.25  # of the lines are as the one before
_PRINTED = (
    "tests/{0}/test_{1}.py::test_{2}_{3}_is_{4} PASSED [ {percent}%]",
    "tests/{0}/test_{1}.py .................... [ {percent}%]",
    "2026-{month:02}-{day:02}T{hour:02}:{percent:02}:07.{n:03}Z INFO {0}.{1}: {2} took {n} ms request={hash}",
    "  {0}-{1}-{2}@{hour}.{day}.{month}  {hash}",
    "   Compiling {0}-{1} v0.{hour}.{month}",
    "{hash} {0} the {1} of the {2}",
    "        at {0}.{1} (/app/node_modules/{0}/dist/{2}.js:{n}:{percent})",
    "  modified:   src/{0}/{1}.py",
    "src/{0}/{1}.py:{n}: error: {2} has no attribute {3}  [attr-defined]",
    " \\u001b[32m✓\\u001b[39m {0} {1} {2} \\u001b[2m({n} ms)\\u001b[22m",
    "{0:<24} {n:>8} {percent:>4}%",
    "| {0} | {1} | {n} |",
    "-rw-r--r-- 1 zoe zoe {n:>6} Oct {day:>2} {hour:02}:{percent:02} {0}_{1}.py",
    '  "{0}": {{"{1}": {n}, "{2}": "{3}"}},',
)
_LISTED = (
    "/home/zoe/ferry/src/{0}/{1}.py",
    "src/{0}/{1}.py:{n}:        return self._{2}({3})",
    "src/{0}/{1}.py:{n}:    def {2}_{3}(self) -> None:",
    "src/{0}/{1}.py-{n}-        {2} = {3}",
)


def printed_lines(rng: Random, words: Words, size: int) -> list[bytes]:
    """The output of builds, tests and logs."""
    return list(_blocks(rng, words, size, _PRINTED))


def listed_lines(rng: Random, words: Words, size: int) -> list[bytes]:
    """The output of searches for files and in them."""
    return list(_blocks(rng, words, size, _LISTED))


def _blocks(rng: Random, words: Words, size: int, templates: tuple[str, ...]) -> Iterator[bytes]:
    written = 0
    while written < size:
        template = templates[int(rng.random() * len(templates))]
        names = words.names(16)
        month, hour, percent = rng.randrange(1, 13), rng.randrange(24), 0.0
        count = 6 + int(rng.random() ** 2 * 60)
        line = b""
        for _ in range(count):
            percent += 60 / count
            if line and rng.random() < _AGAIN:
                written += len(line) + 2
                yield line
                continue
            line = escaped(
                template.format(
                    *[names[int(rng.random() ** 2 * len(names))] for _ in range(5)],
                    n=int(rng.random() ** 3 * 9999),
                    hash=f"{rng.getrandbits(28):07x}",
                    month=month,
                    hour=hour,
                    day=month * 2,
                    percent=int(percent),
                )
            )
            written += len(line) + 2
            yield line
