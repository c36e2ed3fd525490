"""Code, prompts and subjects of a simulated project. Many lines are common, as in real code."""

from collections.abc import Iterable, Iterator, Mapping
from random import Random

LARGE_FILE = "src/large.py"

_VERBS = [
    "load",
    "save",
    "parse",
    "render",
    "merge",
    "split",
    "check",
    "update",
    "remove",
    "list",
    "find",
    "count",
    "sort",
    "send",
    "fetch",
]
_NOUNS = [
    "order",
    "price",
    "user",
    "route",
    "ticket",
    "report",
    "invoice",
    "account",
    "message",
    "level",
    "record",
    "stock",
    "page",
    "token",
    "photo",
    "segment",
    "window",
    "berth",
    "tariff",
    "season",
]
_FIELDS = [
    "id",
    "name",
    "total",
    "amount",
    "created_at",
    "is_open",
    "owner",
    "kind",
    "state",
    "rate",
    "limit",
    "offset",
    "path",
    "text",
    "size",
]
_SUBJECTS = ("Fix tests", "Update docs", "wip", "Review comments", "Clean up", "Fix typo")
_COMMON = (
    "import json",
    "import logging",
    "from pathlib import Path",
    "from typing import Any",
    "logger = logging.getLogger(__name__)",
    "        return None",
    "    return result",
    "    result = []",
    "    if not items:",
    "        raise ValueError('missing value')",
    "    try:",
    "    except KeyError:",
    "    for item in items:",
    "        continue",
    "    with path.open() as file:",
    "    else:",
)
# What real files repeat: each block is long enough that git takes it for a copy.
_BOILERPLATE = (
    (
        "if __name__ == '__main__':",
        "    logging.basicConfig(level=logging.INFO)",
        "    sys.exit(main(sys.argv[1:]))",
    ),
    ("import os", "import sys", "from collections.abc import Iterable", "from dataclasses import dataclass"),
    (
        "@pytest.fixture",
        "def client(app):",
        "    with app.test_client() as client:",
        "        yield client",
        "",
    ),
    (
        "    response = client.get(path)",
        "    assert response.status_code == 200",
        "    return response.json()",
    ),
    (
        "    try:",
        "        return json.loads(path.read_text())",
        "    except (OSError, ValueError):",
        "        logger.exception('cannot read the file')",
        "        return None",
    ),
    (
        "    parser = argparse.ArgumentParser()",
        "    parser.add_argument('--verbose', action='store_true')",
        "    parser.add_argument('--output', type=Path)",
        "    options = parser.parse_args(arguments)",
    ),
    (
        "@dataclass(frozen=True)",
        "class Options:",
        "    name: str",
        "    limit: int = 20",
        "    offset: int = 0",
        "    is_open: bool = True",
        "",
    ),
    (
        "describe('page', () => {",
        "  beforeEach(() => {",
        "    vi.resetAllMocks()",
        "  })",
        "  afterEach(() => {",
        "    cleanup()",
        "  })",
        "})",
        "",
    ),
    (
        "    with self.assertRaises(ValueError):",
        "        self.run_with(None)",
        "    self.assertEqual(self.calls, [])",
    ),
    ("    def __repr__(self) -> str:", "        return f'{type(self).__name__}({self.name!r})'", ""),
    (
        "    for index, item in enumerate(items):",
        "        if item is None:",
        "            continue",
        "    return result",
    ),
    (
        "    connection = connect(url)",
        "    connection.execute('begin')",
        "    connection.commit()",
        "    connection.close()",
    ),
)
_MAX_FILE_LINES = 200
_SUFFIXES = ((".py", 8), (".md", 1), (".ts", 2))


class RepeatedText(str):
    """The text of a line that repeats an older line, with the writer of that line."""

    writer: str | None


class Line(str):
    """A line of a file with its writer, which a change of other lines keeps."""

    writer: str | None  # id of the session; None for the user
    is_recorded: bool  # the transcript contains its text
    copied_from: str | None  # writer of the older line that it repeats
    commits: set[int]  # marks of the commits that add it, also by moving or formatting it

    @classmethod
    def written(cls, text: str, writer: str | None, *, is_recorded: bool) -> "Line":
        """Return a new line."""
        line = cls(text)
        line.writer, line.is_recorded, line.commits = writer, is_recorded, set()
        line.copied_from = text.writer if isinstance(text, RepeatedText) else None
        return line

    def reformatted(self, text: str) -> "Line":
        """Return the line with another text, or itself if the text is the same."""
        if text == self:
            return self
        line = Line.written(text, self.writer, is_recorded=self.is_recorded)
        line.commits |= self.commits
        line.copied_from = self.copied_from
        return line


class CodeWriter:
    """Writes and changes files from a small vocabulary."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.large_file_share = 0.0  # changes of one file, which grows to 2,000 lines
        self.boilerplate_share = 0.0  # of functions: lines that many files repeat
        self.modelled_share = 0.0  # of new files: an older file with some other lines
        self.areas = random.sample(_NOUNS, 8)
        self._user_random = Random(random.getrandbits(32))

    def first_files(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the files of the first commit."""
        yield "README.md", ["# Project", "", "Run `make`.", ""]
        yield "CHANGELOG.md", ["# Changes", "", "- First version."]
        for area in self.areas:
            yield (
                f"src/{area}/__init__.py",
                [f'"""The package {area}."""', "", *self._function(self._random, area)],
            )

    def prompt(self, area: str) -> str:
        """Return a request of the user."""
        return f"Please {self._random.choice(_VERBS)} the {area} {self._random.choice(_FIELDS)}"

    def subject(self, area: str) -> str:
        """Return the first line of a commit message. Some are used again and again."""
        if self._random.random() < 0.12:
            return self._random.choice(_SUBJECTS)
        verb, noun, name = (self._random.choice(words) for words in (_VERBS, _NOUNS, _FIELDS))
        return f"{area}: {verb} the {name} of each {noun}"

    def change(
        self, files: Mapping[str, list[str]], area: str, random: Random, *, is_user: bool = False
    ) -> tuple[str, list[str], list[str]]:
        """Return a path with its lines before and after a change."""
        random = self._user_random if is_user else random
        if random.random() < self.large_file_share:
            lines = files.get(LARGE_FILE, [])
            at = random.randint(0, len(lines))
            added = [line for _ in range(6) for line in self._function(random, area)]
            return LARGE_FILE, lines, [*lines[:at], *added, *lines[at:]][:2000]
        choice = random.random()
        own = [path for path, lines in files.items() if f"/{area}/" in path and len(lines) < _MAX_FILE_LINES]
        if choice < 0.15 or not own:
            suffix = random.choices([each for each, _ in _SUFFIXES], [weight for _, weight in _SUFFIXES])[0]
            path = f"src/{area}/{random.choice(_VERBS)}_{random.choice(_NOUNS)}{suffix}"
            if path not in files:
                if self.modelled_share and random.random() < self.modelled_share and own:
                    return path, [], self._modelled(random, files[random.choice(own)])
                functions = [self._function(random, area) for _ in range(random.randint(1, 4))]
                return (
                    path,
                    [],
                    [*random.sample(_COMMON[:5], 3), "", *(line for each in functions for line in each)],
                )
            own = own or [path]
        if choice < 0.22 and "CHANGELOG.md" in files:
            path = "CHANGELOG.md"
            line = f"- The {area} can {random.choice(_VERBS)} every {random.choice(_NOUNS)}."
            lines = files[path]
            return path, lines, [*lines[:2], line, *lines[2:]]
        path = random.choice(own)
        lines = files[path]
        if choice < 0.6:
            at = random.randint(0, len(lines))
            return path, lines, [*lines[:at], *self._function(random, area), *lines[at:]]
        return path, lines, self._modified(random, lines, random.choice([1, 1, 2, 4, 8]))

    def typed_file(self, files: Mapping[str, list[str]]) -> tuple[str, list[str]]:
        """Return a new long file of the user: tests with many lines that other files contain, too."""
        random = self._user_random
        path = f"tests/test_{random.choice(_NOUNS)}_{len(files)}.py"
        blocks: Iterable[Iterable[str]] = (
            random.choice(_BOILERPLATE) if random.random() < 0.7 else random.sample(_COMMON, 4)
            for _ in range(random.randint(20, 60))
        )
        return path, [line for block in blocks for line in block]

    def relocated(self, lines: list[str]) -> tuple[list[str], list[str]]:
        """Return the lines without some of them, and those: code that the user moves to another file."""
        count = self._user_random.randint(6, 30)
        start = self._user_random.randrange(max(1, len(lines) - count))
        return [*lines[:start], *lines[start + count :]], lines[start : start + count]

    def _modelled(self, random: Random, lines: list[str]) -> list[str]:
        found: list[str] = []
        for line in lines:
            assert isinstance(line, Line)
            text = RepeatedText(line)
            text.writer = line.writer
            found.append(self._statement(random) if random.random() < 0.15 else text)
        return found

    def tweak(self, lines: list[str]) -> list[str]:
        """Return the lines with some changes of the user."""
        return self._modified(self._user_random, lines, self._user_random.choice([1, 1, 2, 3]))

    def _modified(self, random: Random, lines: list[str], count: int) -> list[str]:
        start = random.randrange(max(1, len(lines) - count))
        if random.random() < 0.15 and len(lines) > 30:
            return [*lines[:start], *lines[start + count :]]
        return [*lines[:start], *(self._statement(random) for _ in range(count)), *lines[start + count :]]

    def _function(self, random: Random, area: str) -> list[str]:
        if self.boilerplate_share and random.random() < self.boilerplate_share:
            return [*random.choice(_BOILERPLATE)]
        verb, noun, first, second = (random.choice(words) for words in (_VERBS, _NOUNS, _FIELDS, _FIELDS))
        body = [
            random.choice(_COMMON[5:]) if random.random() < 0.45 else self._statement(random)
            for _ in range(random.choice([1, 2, 3, 5, 9]))
        ]
        return [
            f"def {verb}_{noun}({first}, {second}):",
            f'    """{verb.capitalize()} the {noun} of the {area}."""',
            *body,
            f"    return {second}",
            "",
        ]

    def _statement(self, random: Random) -> str:
        verb, noun, first, second = (random.choice(words) for words in (_VERBS, _NOUNS, _FIELDS, _FIELDS))
        return random.choice(
            (
                f"    {first} = {verb}_{noun}({second}, {random.randint(1, 30)})",
                f"    {noun}.{first} = {second}",
                f"    if {noun}.{first} > {random.randint(1, 9)}:",
                f"    assert {verb}_{noun}({first}) == '{second} {random.randint(1, 99)}'",
                f"    # The {noun} has no {first} before the {second} is known.",
                f"    {first} = {noun}['{second}']",
            )
        )


def format_lines(lines: list[str]) -> list[str]:
    """Return the lines as a formatter writes them: double quotes, long calls wrapped."""
    found: list[str] = []
    for line in lines:
        line = line.replace("'", '"')
        if len(line) > 52 and "(" in line and line.endswith(")"):
            head, _, arguments = line.partition("(")
            found += [
                f"{head}(",
                *(f"        {part.strip()}," for part in arguments[:-1].split(",")),
                "    )",
            ]
        else:
            found.append(line)
    return found
