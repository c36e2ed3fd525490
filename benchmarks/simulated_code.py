"""Code, prompts and subjects of a simulated project. Many lines are common, as in real code."""

from collections.abc import Iterator, Mapping
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
_MAX_FILE_LINES = 200
_SUFFIXES = ((".py", 8), (".md", 1), (".ts", 2))


class CodeWriter:
    """Writes and changes files from a small vocabulary."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.large_file_share = 0.0  # changes of one file, which grows to 2,000 lines
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

    def tweak(self, lines: list[str]) -> list[str]:
        """Return the lines with some changes of the user."""
        return self._modified(self._user_random, lines, self._user_random.choice([1, 1, 2, 3]))

    def _modified(self, random: Random, lines: list[str], count: int) -> list[str]:
        start = random.randrange(max(1, len(lines) - count))
        if random.random() < 0.15 and len(lines) > 30:
            return [*lines[:start], *lines[start + count :]]
        return [*lines[:start], *(self._statement(random) for _ in range(count)), *lines[start + count :]]

    def _function(self, random: Random, area: str) -> list[str]:
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
