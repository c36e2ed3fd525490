"""Random command output: blocks of similar lines."""

from collections.abc import Iterator
from random import Random

from tests.builders.claude_code.bulk.vocabulary import Vocabulary, escape_json

_REPEATED_LINE_SHARE = 0.25  # lines equal to the previous one
_OUTPUT_TEMPLATES = (
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
_BOX_TEMPLATES = (
    "│   ├── {0}.py",
    "│   └── {0}_{1}.tsx",
    "│ {0:<24} │ {n:>8} │ {1:<16} │",
    "├───────────┼──────┼──────┤",
)
_SEARCH_TEMPLATES = (
    "/home/zoe/ferry/src/{0}/{1}.py",
    "src/{0}/{1}.py:{n}:        return self._{2}({3})",
    "src/{0}/{1}.py:{n}:    def {2}_{3}(self) -> None:",
    "src/{0}/{1}.py-{n}-        {2} = {3}",
)


def command_output_lines(
    rng: Random, words: Vocabulary, size: int, *, has_boxes: bool = False
) -> list[bytes]:
    """Return the output of builds, tests and logs, in total about ``size`` bytes.

    With ``has_boxes``, some of it are trees and tables of box drawing characters.
    """
    templates = (*_OUTPUT_TEMPLATES, *_BOX_TEMPLATES) if has_boxes else _OUTPUT_TEMPLATES
    return list(_generate_lines(rng, words, size, templates))


def search_output_lines(rng: Random, words: Vocabulary, size: int) -> list[bytes]:
    """Return the output of file and text searches, in total about ``size`` bytes."""
    return list(_generate_lines(rng, words, size, _SEARCH_TEMPLATES))


def _generate_lines(rng: Random, words: Vocabulary, size: int, templates: tuple[str, ...]) -> Iterator[bytes]:
    written = 0
    while written < size:
        template = templates[int(rng.random() * len(templates))]
        names = words.names(24)
        month, hour, percent = rng.randrange(1, 13), rng.randrange(24), 0.0
        count = 6 + int(rng.random() ** 2 * 60)
        line = b""
        for _ in range(count):
            percent += 60 / count
            if line and rng.random() < _REPEATED_LINE_SHARE:
                written += len(line) + 2
                yield line
                continue
            line = escape_json(
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
