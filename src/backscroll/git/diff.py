"""The changed lines of a commit, with the lines around them."""

import re
from collections.abc import Iterator
from typing import Literal

from backscroll.git.process import decode, stream_git, unquote
from backscroll.git.repository import Repository
from backscroll.model import Edit, Hunk

__all__ = ["read_diff"]

_CONTEXT_LINES = 3
_MAX_LINE_BYTES = 2000
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def read_diff(repository: Repository, sha: str, *, max_lines: int) -> Iterator[Edit]:
    """Yield the changes of each text file in a commit. A hunk includes unchanged lines on both sides.

    Stops after ``max_lines``: a file that exceeds them is not included, nor are later ones. A merge has no
    changes.
    """
    lines = stream_git(
        repository.folder,
        *("diff-tree", "--no-commit-id", "--root", "-r", "-M", "-p", f"-U{_CONTEXT_LINES}", "--no-color"),
        *(
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=all",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            sha,
        ),
        lines=(),
    )
    file: _File | None = None
    for count, line in enumerate(lines):
        if count >= max_lines:
            return
        if line.startswith(b"diff --git "):  # a line of content starts with a sign
            if file is not None:
                yield from file.edit()
            file = _File()
        elif file is not None:
            file.add(line[:_MAX_LINE_BYTES])
    if file is not None:
        yield from file.edit()


class _File:
    """The changes of one file, read line by line."""

    def __init__(self) -> None:
        self._path = ""
        self._kind: Literal["create", "update", "delete"] = "update"
        self._hunks: list[Hunk] = []
        self._start = (0, 0)
        self._removed: list[str] = []
        self._added: list[str] = []
        self._remaining = [0, 0]  # lines of the current hunk: old, new

    def edit(self) -> Iterator[Edit]:
        """Yield the changes, if there are any lines."""
        if self._path and self._hunks:
            yield Edit(path=self._path, hunks=tuple(self._hunks), kind=self._kind)

    def add(self, line: bytes) -> None:
        """Add a line of the patch."""
        if any(self._remaining):
            self._add_content(line)
        elif match := _HUNK.match(line):
            self._start = int(match[1]), int(match[3])
            self._remaining = [int(match[2] or 1), int(match[4] or 1)]
        elif line.startswith((b"--- ", b"+++ ")):
            path = unquote(decode(line[4:]).removesuffix("\t"))
            self._path = path[2:] if path != "/dev/null" else self._path
        elif line.startswith(b"new file mode "):
            self._kind = "create"
        elif line.startswith(b"deleted file mode "):
            self._kind = "delete"

    def _add_content(self, line: bytes) -> None:
        sign, text = line[:1], decode(line[1:])
        if sign == b"\\":  # "No newline at end of file"
            return
        if sign != b"+":
            self._removed.append(text)
            self._remaining[0] -= 1
        if sign != b"-":
            self._added.append(text)
            self._remaining[1] -= 1
        if not any(self._remaining):
            self._hunks.append(Hunk(tuple(self._removed), tuple(self._added), *self._start))
            self._removed, self._added = [], []
