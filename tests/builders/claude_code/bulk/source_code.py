"""Random source files. Each file repeats a few names and line templates."""

from random import Random

from tests.builders.claude_code.bulk.vocabulary import Vocabulary, escape_json

_NAMES_PER_FILE = 24
_REPEATED_LINE_SHARE = 0.35  # lines that already occur in the file
_LINE_TEMPLATES = (
    "",
    "",
    "    def {0}_{1}(self, {2}: str, {3}: int = {n}) -> {4} | None:",
    '        """The {0} of the {1}, or none when there is no {2}."""',
    "        if {0} is None:",
    "            return None",
    "        for {0} in self._{1}:",
    "            {0}.{1}({2}, {3}={n})",
    "            if not {0}:",
    "                continue",
    "        {0} = self._{1}.get({2})",
    '        raise ValueError(f"no {0} called {{{1}}}")',
    "        return {0}",
    "        return [{0}.{1} for {0} in {2} if {0}.{3}]",
    "        # {sentence}",
    "        {0}, {1} = {2}.{3}({0}, {1})",
    "        with self.{0}({1}) as {2}:",
    "        assert {0} == {1}({2})",
    "        self._{0} = {1}",
    "    @property",
    "        else:",
    '        log.info("{0} %s {1}", {2})',
    '    "{0}": "{1}",',
    "  {0}: {n}",
)
_HEADER_TEMPLATES = (
    '"""{sentence}"""',
    "",
    "from {0}.{1} import {2}, {3}",
    "from {0}.{4} import {1}_{2}",
    "import {3}",
    "",
    "",
    "class {0}{1}:",
)


def source_code_lines(
    rng: Random, words: Vocabulary, size: int
) -> tuple[list[bytes], list[bytes], list[int]]:
    """Return the lines of many files, the same lines with line numbers, and the first line of each file."""
    plain: list[bytes] = []
    numbered: list[bytes] = []
    file_starts: list[int] = []
    written = 0
    while written < size:
        file_starts.append(len(plain))
        names = words.names(_NAMES_PER_FILE)
        frequent = [_LINE_TEMPLATES[int(rng.random() ** 1.5 * len(_LINE_TEMPLATES))] for _ in range(14)]
        templates = [
            *_HEADER_TEMPLATES,
            *(_choose_template(rng, frequent) for _ in range(20 + int(rng.random() ** 2 * 500))),
        ]
        for number, template in enumerate(templates, 1):
            is_repeated = number > len(_HEADER_TEMPLATES) and rng.random() < _REPEATED_LINE_SHARE
            line = (
                plain[-rng.randrange(1, number)] if is_repeated else _format_line(rng, words, names, template)
            )
            plain.append(line)
            numbered.append(b"%6d\xe2\x86\x92%b" % (number, line))
            written += len(line) + 2
    return plain, numbered, file_starts


def _choose_template(rng: Random, frequent: list[str]) -> str:
    templates = frequent if rng.random() < 0.7 else _LINE_TEMPLATES
    return templates[int(rng.random() * len(templates))]


def _format_line(rng: Random, words: Vocabulary, names: list[str], template: str) -> bytes:
    if "{" not in template:
        return template.encode()
    chosen = [names[int(rng.random() ** 2 * len(names))] for _ in range(5)]
    sentence = words.sentence(8) if "{s" in template else ""
    return escape_json(template.format(*chosen, n=int(rng.random() ** 4 * 9999), sentence=sentence))
