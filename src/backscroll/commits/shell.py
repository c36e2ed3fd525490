"""Shell commands of an assistant: commits that they create, text that they write, files that they change.

Commands are split into simple commands and words as far as it is needed to recognize programs.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_HEREDOC = re.compile(
    r"^(?P<before>[^\n]*?)<<(?P<dash>-?)\s*(?P<quote>['\"]?)(?P<word>\w+)(?P=quote)(?P<after>[^\n]*)\n"
    r"(?P<body>.*?)^[\t ]*(?P=word)\b(?P<tail>[^\n]*)$",
    re.DOTALL | re.MULTILINE,
)
_TOKEN = re.compile(
    r"""
    (?P<space>(?:[ \t\r]|\\\n)+)
  | (?P<end>\n|;|&&?|\|\|?|\$?\(|\)|`)
  | (?P<comment>(?<![^\s;&|()])\#[^\n]*)
  | \$?'(?P<single>[^']*)'?
  | "(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"?
  | \\(?P<escaped>.)
  | (?P<plain>[^\s;&|()`'"\\$]+|.)
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPED = re.compile(r"\\([$`\"\\])")
_ASSIGNMENT = re.compile(r"\w+=")
_KEYWORDS = frozenset(["then", "do", "else", "elif", "if", "while", "until", "!", "{"])
_WRAPPERS = frozenset(["sudo", "doas", "env", "time", "command", "nohup", "exec", "nice", "timeout", "xargs"])
_SHELLS = frozenset(["sh", "bash", "zsh", "dash", "ksh", "fish"])
_WRAPPED = _SHELLS | {"git", "git.exe"}
_SHELL_OPTION = re.compile(r"-\w*c")
_MAX_NESTED_SHELLS = 3
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
_REDIRECT = re.compile(r"(?:>>?\s*|\btee\s+(?:-a\s+)?)(['\"]?)([^\s'\"|&;<>()]+)\1")
_TRIPLE_QUOTE = re.compile("'''|\"\"\"")
_QUOTED_TEXT = re.compile(r"'''.*?'''|\"\"\".*?\"\"\"", re.DOTALL)
# The path of a file that a script opens, or keeps in a variable.
_OPENED = re.compile(
    r"(?:\b(?:open|Path|(?:read|write)File(?:Sync)?|File\.(?:read|write))\(\s*"
    r"|^[ \t]*(?:const |let |var )?\w+ = (?:Path\()?)"
    r"[rf]?['\"]([\w@+~:./\\-]*\w\.\w{1,10})['\"]",
    re.MULTILINE,
)
_PATCH_FILE = re.compile(r"^(?:\*\*\* (?:Add|Update) File: |\+\+\+ (?:b/)?)(.+?)\s*$", re.MULTILINE)
# Commands that change files which they name.
_CHANGING = re.compile(
    r"\b(?:sed\s+(?:-\w+\s+)*-i|perl\s+-\w*i|mv|cp|rm|tee|touch|patch|black|ruff|prettier|eslint|gofmt|rustfmt"
    r"|isort|autopep8|git\s+(?:-C\s+\S+\s+)?(?:add|mv|rm|commit|apply))\b|>"
)
_PATH_WORD = re.compile(
    r"(?<![\w/.@~-])[~.]{0,2}/?(?:[\w@.+-]+/)*[\w@+-]*\.?[\w@+-]+(?:\.\w{1,10})+|"
    r"(?<![\w/.@~-])[~.]{0,2}/?(?:[\w@.+-]+/)+[\w@.+-]+"
)
_MAX_PATHS = 40


class CommitCommand(NamedTuple):
    """A shell command that creates commits."""

    subjects: list[str]  # first lines of the messages
    message_files: list[str]  # files that contain messages
    folder: str  # of ``cd`` or ``git -C``; empty if the command names none
    is_merge: bool  # it runs only ``git merge``
    shows_head: bool  # a later git command prints the hash of the new commit


def parse_commit(command: str) -> CommitCommand | None:
    """Return what a command says about the commits that it creates, None if it creates none."""
    command = command[:_MAX_COMMAND_CHARS]
    if "git" not in command or not _CREATING_WORD.search(command):
        return None
    names: list[str] = []
    messages = [
        match["body"]
        for match in (_HEREDOC.finditer(command) if "<<" in command else ())
        if _ends_in_commit(match["before"])
    ]
    files: list[str] = []
    folder, commit_folder, shows_head = "", "", False
    for words in _simple_commands(_without_heredocs(command)):
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


def _ends_in_commit(command: str) -> bool:
    """Return whether the last simple command creates a commit. Its quotes may be open."""
    if "git" not in command:
        return False
    last = deque(_simple_commands(command), maxlen=1)
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


class ShellWrite(NamedTuple):
    """Text in a command that was written to a file, or to the input of another program."""

    path: str  # empty if it is not known
    text: str
    is_script: bool = False  # the text is a program that changes the file


def written_texts(command: str) -> Iterator[ShellWrite]:
    """Yield the texts of here-documents. In a patch, only the added lines."""
    if "<<" not in command or len(command) > _MAX_COMMAND_CHARS:
        return
    for match in _HEREDOC.finditer(command):
        before, after, body = match["before"], match["after"], match["body"]
        if _ends_in_commit(before):
            continue  # the message of a commit
        if "*** Begin Patch" in body or re.search(r"^\+\+\+ ", body, re.MULTILINE):
            yield from _patched_files(body)
            continue
        redirect = _REDIRECT.search(before + " " + after)
        if redirect is not None:
            yield ShellWrite(redirect[2], body)
        else:  # a script can contain the text in strings
            yield ShellWrite(
                _opened_file(body),
                body + "\n" + _TRIPLE_QUOTE.sub("\n", body) if _TRIPLE_QUOTE.search(body) else body,
                is_script=True,
            )


def _opened_file(script: str) -> str:
    """Return the path that a script opens, empty if it opens several ones or none is known."""
    names = set(_OPENED.findall(_QUOTED_TEXT.sub("", script)))
    return names.pop() if len(names) == 1 else ""


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
    return list(dict.fromkeys(_PATH_WORD.findall(text)))[:_MAX_PATHS]


def _without_heredocs(command: str) -> str:
    """Return a command without the bodies of its here-documents."""
    return _HEREDOC.sub(r"\g<before> \g<after>\g<tail>", command) if "<<" in command else command


def _simple_commands(command: str, *, depth: int = 0) -> Iterator[list[str]]:
    """Yield the words of each simple command. Quotes, keywords, assignments and wrappers are removed.

    The command of ``bash -c`` is split too. A command must not contain here-documents.
    """
    for words in _split(command):
        words = _without_prefix(words)
        nested = _nested(words)
        if nested and " " in nested[0] and depth < _MAX_NESTED_SHELLS:
            yield from _simple_commands(nested[0], depth=depth + 1)
        elif nested or words:
            yield nested or words  # a tool that has a list of words does not quote the command


def _split(command: str) -> Iterator[list[str]]:
    words: list[str] = []
    word: str | None = None
    for match in _TOKEN.finditer(command):
        kind = match.lastgroup or ""
        if kind in ("space", "end", "comment"):
            if word is not None:
                words.append(word)
            word = None
            if kind == "end":
                yield words
                words = []
            continue
        text = match[kind]
        word = (word or "") + (_ESCAPED.sub(r"\1", text) if kind == "double" else text)
    yield [*words, word] if word is not None else words


def _without_prefix(words: list[str]) -> list[str]:
    """Return the words from the program on."""
    for index, word in enumerate(words):
        if word in _KEYWORDS or _ASSIGNMENT.match(word):
            continue
        if word in _WRAPPERS:
            rest = words[index + 1 :]
            return rest[next((at for at, word in enumerate(rest) if _program_name(word) in _WRAPPED), 0) :]
        return words[index:]
    return []


def _program_name(word: str) -> str:
    """Return the name of a program without its folder."""
    return word[word.rfind("/") + 1 :]


def _nested(words: Sequence[str]) -> list[str]:
    """Return the words of the command that a shell runs, none if it runs a file or is no shell."""
    if not words or _program_name(words[0]) not in _SHELLS:
        return []
    for index, word in enumerate(words[1:], start=1):
        if _SHELL_OPTION.fullmatch(word):
            return [*words[index + 1 :]]
        if not word.startswith("-"):
            return []
    return []
