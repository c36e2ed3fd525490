"""Parse shell commands of an assistant: written text and changed files."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from backscroll.commits.shell.commit_commands import ends_in_commit
from backscroll.commits.shell.words import HEREDOC

__all__ = ["ShellWrite", "changed_paths", "written_texts"]

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


class ShellWrite(NamedTuple):
    """Text in a command that was written to a file, or to the input of another program."""

    path: str  # empty if it is not known
    text: str


def written_texts(command: str) -> Iterator[ShellWrite]:
    """Yield the texts of here-documents. In a patch, only the added lines."""
    if "<<" not in command or len(command) > _MAX_COMMAND_CHARS:
        return
    for match in HEREDOC.finditer(command):
        before, after, body = match["before"], match["after"], match["body"]
        if ends_in_commit(before):
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
        text = HEREDOC.sub(r"\g<before> \g<after>", text)
    return list(dict.fromkeys(_PATH.findall(text)))[:_MAX_PATHS]
