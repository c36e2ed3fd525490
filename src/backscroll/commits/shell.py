"""Parse shell commands of an assistant: written text, changed files, and calls of `git commit`."""

import re
from collections.abc import Iterator
from typing import NamedTuple

__all__ = [
    "ShellWrite",
    "changed_paths",
    "commit_subjects",
    "first_line",
    "is_commit",
    "message_files",
    "named_hashes",
    "printed_hashes",
    "written_texts",
]

_HEREDOC = re.compile(
    r"^(?P<before>[^\n]*?)<<(?P<dash>-?)\s*(?P<quote>['\"]?)(?P<word>\w+)(?P=quote)(?P<after>[^\n]*)\n"
    r"(?P<body>.*?)^[\t ]*(?P=word)[ \t]*\)?\"?[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_REDIRECT = re.compile(r"(?:>>?\s*|\btee\s+(?:-a\s+)?)(['\"]?)([^\s'\"|&;<>()]+)\1")
_TRIPLE_QUOTE = re.compile("'''|\"\"\"")
_PATCH_FILE = re.compile(r"^(?:\*\*\* (?:Add|Update) File: |\+\+\+ (?:b/)?)(.+?)\s*$", re.MULTILINE)

# Commands that change files which they name.
_CHANGING = re.compile(
    r"\b(?:sed\s+(?:-\w+\s+)*-i|perl\s+-\w*i|mv|cp|rm|tee|touch|patch|black|ruff|prettier|eslint|gofmt|rustfmt"
    r"|isort|autopep8|git\s+(?:-C\s+\S+\s+)?(?:add|mv|rm|commit|apply))\b|>"
)
_PATH = re.compile(
    r"(?<![\w/.@~-])[~.]{0,2}/?(?:[\w@.+-]+/)*[\w@+-]*\.?[\w@+-]+(?:\.\w{1,10})+|"
    r"(?<![\w/.@~-])[~.]{0,2}/?(?:[\w@.+-]+/)+[\w@.+-]+"
)
_MAX_PATHS = 40
_MAX_COMMAND_CHARS = 200_000

_COMMIT = re.compile(
    r"\bgit\b(?:\s+-[cC]\s+\S+|\s+--[\w-]+(?:=\S+)?)*\s+(?:commit|cherry-pick|revert|merge)\b"
)
_MESSAGE = re.compile(
    r"(?:\s-[a-zA-Z]*m|\s--message)(?:\s+|=)?(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s'\"$-][^\s;&|]*))",
    re.DOTALL,
)
_MESSAGE_FILE = re.compile(r"\s(?:-[a-zA-Z]*F|--file)(?:\s+|=)?(['\"]?)([^\s'\";&|]+)\1")
_PRINTED = re.compile(r"^\[[^\]\n]*?\b([0-9a-f]{7,40})\] ", re.MULTILINE)
_OTHER_HASH = re.compile(r"(?:^|\bcommit |\.\.)([0-9a-f]{7,40})\b", re.MULTILINE)
_MAX_OTHER_HASHES = 3
_NAMED_HASH = re.compile(r"(?<![\w-])(?=\d*[a-f])[0-9a-f]{7,40}(?![\w-])")
_MAX_NAMED_HASHES = 100


class ShellWrite(NamedTuple):
    """Text in a command that was written to a file, or to the input of another program."""

    path: str  # empty if it is not known
    text: str


def written_texts(command: str) -> Iterator[ShellWrite]:
    """Yield the texts of here-documents. In a patch, only the added lines."""
    if "<<" not in command or len(command) > _MAX_COMMAND_CHARS:
        return
    for match in _HEREDOC.finditer(command):
        before, after, body = match["before"], match["after"], match["body"]
        if _COMMIT.search(before):
            continue  # the message of a commit
        if "*** Begin Patch" in body or re.search(r"^\+\+\+ ", body, re.MULTILINE):
            yield from _patched_files(body)
            continue
        redirect = _REDIRECT.search(before + " " + after)
        if redirect is not None:
            yield ShellWrite(redirect[2], body)
        else:  # a script can contain the text in strings
            yield ShellWrite(
                "", body + "\n" + _TRIPLE_QUOTE.sub("\n", body) if _TRIPLE_QUOTE.search(body) else body
            )


def _patched_files(patch: str) -> Iterator[ShellWrite]:
    path, added = "", list[str]()
    for line in patch.split("\n"):
        header = _PATCH_FILE.match(line)
        if header is not None:
            if added:
                yield ShellWrite(path, "\n".join(added))
            path, added = header[1], []
        elif line.startswith("+"):
            added.append(line[1:])
    if added:
        yield ShellWrite(path, "\n".join(added))


def changed_paths(command: str) -> list[str]:
    """Return the paths in a command that changes files. Other words with a dot or slash can be among them."""
    text = command[:_MAX_COMMAND_CHARS]
    if not _CHANGING.search(text):
        return []
    if "<<" in text:
        text = _HEREDOC.sub(r"\g<before> \g<after>", text)
    return list(dict.fromkeys(_PATH.findall(text)))[:_MAX_PATHS]


def is_commit(command: str) -> bool:
    """Return whether a command creates a commit."""
    return _COMMIT.search(command) is not None


def commit_subjects(command: str) -> list[str]:
    """Return the first lines of the commit messages in a command."""
    subjects: list[str] = []
    for match in _HEREDOC.finditer(command[:_MAX_COMMAND_CHARS]):
        if _COMMIT.search(match["before"]):
            subjects.append(match["body"])
    for match in _MESSAGE.finditer(_HEREDOC.sub(" ", command[:_MAX_COMMAND_CHARS])):
        subjects.append(next(filter(None, match.groups()), "").replace('\\"', '"').replace("\\n", "\n"))
    first_lines = map(first_line, subjects)
    return [line for line in dict.fromkeys(first_lines) if line and not line.startswith("$(")]


def message_files(command: str) -> list[str]:
    """Return the files that contain commit messages."""
    return [path for _, path in _MESSAGE_FILE.findall(command[:_MAX_COMMAND_CHARS]) if path != "-"]


def first_line(text: str) -> str:
    """Return the first line of a message."""
    return text.strip().partition("\n")[0].strip()


def printed_hashes(output: str) -> list[str]:
    """Return the hashes of the commits that git reports as created, or else the first ones printed."""
    printed = _PRINTED.findall(output)
    return list(dict.fromkeys(printed or _OTHER_HASH.findall(output)[:_MAX_OTHER_HASHES]))


def named_hashes(text: str) -> tuple[str, ...]:
    """Return the words of a text that can be hashes of commits."""
    return tuple(dict.fromkeys(_NAMED_HASH.findall(text)))[:_MAX_NAMED_HASHES]
