"""Recognize shell commands that create commits: their messages, folders and the hashes that git prints."""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from backscroll.commits.shell.words import HEREDOC, simple_commands, without_heredocs

__all__ = [
    "CommitCommand",
    "created_hashes",
    "ends_in_commit",
    "first_line",
    "is_commit",
    "is_nothing_committed",
    "named_hashes",
    "parse_commit",
    "shown_hashes",
]

_MAX_COMMAND_CHARS = 200_000
_CREATING = ("commit", "cherry-pick", "revert", "merge")
_CREATING_WORD = re.compile(rf"\b(?:{'|'.join(_CREATING)})\b")
_NOT_CREATING = {"--abort", "--quit", "--skip", "--dry-run", "--ff-only", "--no-commit", "--help", "-h"}
_SHOWING = ("log", "rev-parse", "show", "push")  # print the hash of a commit that was just created
_VALUE_OPTIONS = ("-c", "-C", "--git-dir", "--work-tree", "--namespace", "--config-env")
_MESSAGE_OPTION = re.compile(r"-[a-ln-zA-EG-Z]*m|--message=?")
_FILE_OPTION = re.compile(r"-[a-ln-zA-EG-Z]*F|--file=?")
# The summary of a new commit names a branch: "[main 1a2b3c4] Subject".
_CREATED = re.compile(r"^\[[^\]\n]+ ([0-9a-f]{7,64})\] ", re.MULTILINE)
_SHOWN = re.compile(r"(?:^|\bcommit |\.\.)([0-9a-f]{7,64})\b", re.MULTILINE)
_MAX_SHOWN_HASHES = 3
_NO_COMMIT = ("nothing to commit", "nothing added to commit", "no changes added to commit")
_NAMED_HASH = re.compile(r"(?<![\w-])(?=\d*[a-f])[0-9a-f]{7,40}(?![\w-])")
_MAX_NAMED_HASHES = 100


class CommitCommand(NamedTuple):
    """A shell command that creates commits."""

    subjects: list[str]  # first lines of the messages
    message_files: list[str]  # files that contain messages
    folder: str  # of ``cd`` or ``git -C``; empty if the command names none
    is_merge: bool  # it runs only ``git merge``
    shows_head: bool  # a later git command prints the hash of the new commit


def is_commit(command: str) -> bool:
    """Return whether a command creates a commit."""
    return parse_commit(command) is not None


def parse_commit(command: str) -> CommitCommand | None:
    """Return what a command says about the commits that it creates, None if it creates none."""
    command = command[:_MAX_COMMAND_CHARS]
    if "git" not in command or not _CREATING_WORD.search(command):
        return None
    names: list[str] = []
    messages = [
        match["body"]
        for match in (HEREDOC.finditer(command) if "<<" in command else ())
        if ends_in_commit(match["before"])
    ]
    files: list[str] = []
    folder, commit_folder, shows_head = "", "", False
    for words in simple_commands(without_heredocs(command)):
        if words[0] in ("cd", "pushd") and not words[-1].startswith("-") and len(words) > 1 and not names:
            folder = _join(folder, words[-1])
        name, arguments, folders = _git_command(words)
        if name in _CREATING and _creates_commit(name, arguments):
            names.append(name)
            commit_folder = folder
            for each in folders:
                commit_folder = _join(commit_folder, each)
            if name in ("commit", "merge"):  # -m of the others is the number of a parent
                messages += _option_values(arguments, _MESSAGE_OPTION)
                files += _option_values(arguments, _FILE_OPTION)
        elif name in _SHOWING and names:
            shows_head = True
    if not names:
        return None
    subjects = dict.fromkeys(first_line(message.replace("\\n", "\n")) for message in messages)
    return CommitCommand(
        [subject for subject in subjects if subject and not subject.startswith("$(")],
        [path for path in files if path != "-"],
        commit_folder,
        set(names) == {"merge"},
        shows_head,
    )


def _creates_commit(name: str, arguments: Sequence[str]) -> bool:
    if name == "merge" and "--squash" in arguments:
        return False
    return _NOT_CREATING.isdisjoint(arguments)


def ends_in_commit(command: str) -> bool:
    """Return whether the last simple command creates a commit. Its quotes may be open."""
    if "git" not in command:
        return False
    last = deque(simple_commands(command), maxlen=1)
    return bool(last) and _git_command(last[0])[0] in _CREATING


def _git_command(words: Sequence[str]) -> tuple[str, Sequence[str], list[str]]:
    """Return the name of a git command, its arguments, and the folders of ``-C``; empty if it is not git."""
    if not words or words[0].rpartition("/")[2] not in ("git", "git.exe"):
        return "", (), []
    folders: list[str] = []
    remaining = iter(range(1, len(words)))
    for index in remaining:
        word = words[index]
        if word in _VALUE_OPTIONS:
            value = next(remaining, None)
            if word == "-C" and value is not None:
                folders.append(words[value])
        elif not word.startswith("-"):
            return word, words[index + 1 :], folders
    return "", (), []


def _option_values(arguments: Sequence[str], option: re.Pattern[str]) -> Iterator[str]:
    """Yield the values of an option, in the next word or in the same one."""
    words = iter(arguments)
    for word in words:
        if word == "--":
            return
        match = option.match(word)
        if match is None:
            continue
        value = word[match.end() :] or next(words, "")
        if value:
            yield value


def _join(folder: str, path: str) -> str:
    path = path.replace("\\", "/")
    is_absolute = path.startswith(("/", "~")) or path[1:2] == ":"
    return path if is_absolute or not folder else f"{folder.rstrip('/')}/{path}"


def first_line(text: str) -> str:
    """Return the first line of a message."""
    return text.strip().partition("\n")[0].strip()


def created_hashes(output: str) -> list[str]:
    """Return the hashes of the commits that git reports as created."""
    return list(dict.fromkeys(_CREATED.findall(output)))


def shown_hashes(output: str) -> list[str]:
    """Return the first hashes that git prints. Older commits can be among them."""
    return list(dict.fromkeys(_SHOWN.findall(output)))[:_MAX_SHOWN_HASHES]


def is_nothing_committed(output: str) -> bool:
    """Return whether git reports that there was nothing to commit."""
    return any(text in output for text in _NO_COMMIT)


def named_hashes(text: str) -> tuple[str, ...]:
    """Return the words of a text that can be hashes of commits."""
    return tuple(dict.fromkeys(_NAMED_HASH.findall(text)))[:_MAX_NAMED_HASHES]
