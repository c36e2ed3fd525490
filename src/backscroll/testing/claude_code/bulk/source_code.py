"""Programs: files in which the same few names and phrases come again and again."""

from random import Random

from backscroll.testing.claude_code.bulk.vocabulary import Words, escaped

__all__ = ["program_lines"]

_NAMES = 24  # that a file is about
_AGAIN = 0.35  # of its lines stand in it before
_PHRASES = (
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
_HEAD = (
    '"""{sentence}"""',
    "",
    "from {0}.{1} import {2}, {3}",
    "from {0}.{4} import {1}_{2}",
    "import {3}",
    "",
    "",
    "class {0}{1}:",
)


def program_lines(rng: Random, words: Words, size: int) -> tuple[list[bytes], list[bytes], list[int]]:
    """Many files one after another, the same with line numbers, and the line each begins with."""
    plain: list[bytes] = []
    numbered: list[bytes] = []
    files: list[int] = []
    written = 0
    while written < size:
        files.append(len(plain))
        names = words.names(_NAMES)
        habits = [_PHRASES[int(rng.random() ** 1.5 * len(_PHRASES))] for _ in range(14)]
        templates = [*_HEAD, *(_chosen(rng, habits) for _ in range(20 + int(rng.random() ** 2 * 500)))]
        for number, template in enumerate(templates, 1):
            again = number > len(_HEAD) and rng.random() < _AGAIN
            line = plain[-rng.randrange(1, number)] if again else _line(rng, words, names, template)
            plain.append(line)
            numbered.append(b"%6d\xe2\x86\x92%b" % (number, line))
            written += len(line) + 2
    return plain, numbered, files


def _chosen(rng: Random, habits: list[str]) -> str:
    among = habits if rng.random() < 0.7 else _PHRASES
    return among[int(rng.random() * len(among))]


def _line(rng: Random, words: Words, names: list[str], template: str) -> bytes:
    if "{" not in template:
        return template.encode()
    chosen = [names[int(rng.random() ** 2 * len(names))] for _ in range(5)]
    said = " ".join(words.take(8)) if "{s" in template else ""
    return escaped(template.format(*chosen, n=int(rng.random() ** 4 * 9999), sentence=said))
