"""Split a shell command into simple commands and words, as far as it is needed to recognize programs."""

import re
from collections.abc import Iterator, Sequence

__all__ = ["HEREDOC", "simple_commands", "without_heredocs"]

HEREDOC = re.compile(
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


def without_heredocs(command: str) -> str:
    """Return a command without the bodies of its here-documents."""
    return HEREDOC.sub(r"\g<before> \g<after>\g<tail>", command) if "<<" in command else command


def simple_commands(command: str, *, depth: int = 0) -> Iterator[list[str]]:
    """Yield the words of each simple command. Quotes, keywords, assignments and wrappers are removed.

    The command of ``bash -c`` is split too. A command must not contain here-documents.
    """
    for words in _split(command):
        words = _without_prefix(words)
        nested = _nested(words)
        if nested and " " in nested[0] and depth < _MAX_NESTED_SHELLS:
            yield from simple_commands(nested[0], depth=depth + 1)
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
            return rest[next((at for at, word in enumerate(rest) if _name(word) in _WRAPPED), 0) :]
        return words[index:]
    return []


def _name(word: str) -> str:
    """Return the name of a program without its folder."""
    return word[word.rfind("/") + 1 :]


def _nested(words: Sequence[str]) -> list[str]:
    """Return the words of the command that a shell runs, none if it runs a file or is no shell."""
    if not words or _name(words[0]) not in _SHELLS:
        return []
    for index, word in enumerate(words[1:], start=1):
        if _SHELL_OPTION.fullmatch(word):
            return [*words[index + 1 :]]
        if not word.startswith("-"):
            return []
    return []
