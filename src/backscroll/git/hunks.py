"""The first-parent history of a branch as hunks: which lines each commit replaces."""

import re
from collections.abc import Iterator

from msgspec import Struct

from backscroll.git.process import decode, stream_git, unquote
from backscroll.git.repository import Repository

__all__ = ["CommitHunks", "FileHunks", "HunkLines", "read_hunks"]

_MARK = b"\x01commit "  # starts the line of a commit; no line of a patch starts with it
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class HunkLines(Struct, frozen=True, gc=False):
    """Lines that replace others. Numbers count from 1 and are those of the old file."""

    old_start: int
    old_count: int
    new_start: int
    added: tuple[bytes, ...]


class FileHunks(Struct):
    """Changes of one file."""

    path: str = ""
    old_path: str | None = None  # if the file is renamed
    is_deleted: bool = False
    hunks: list[HunkLines] = []


class CommitHunks(Struct, frozen=True):
    """Changes of one commit against its first parent."""

    sha: str
    authored_at: int  # seconds since 1970
    committed_at: int
    files: list[FileHunks]


def read_hunks(repository: Repository, ref: str) -> Iterator[CommitHunks]:
    """Yield the commits of the first-parent history, oldest first. A merge contains what it merges."""
    lines = stream_git(
        repository.folder,
        *("log", "--first-parent", "-m", "--reverse", "--topo-order", "-p", "-U0", "-M", "--no-color"),
        *("--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--format=%x01commit %H %at %ct"),
        *(ref, "--"),
        lines=(),
    )
    current: CommitHunks | None = None
    remaining_old = remaining_new = 0
    added: list[bytes] = []
    span = (0, 0, 0)
    for line in lines:
        if remaining_old or remaining_new:
            if line.startswith(b"-"):
                remaining_old -= 1
            elif line.startswith(b"+"):
                remaining_new -= 1
                added.append(line[1:])
            if not remaining_old and not remaining_new and current is not None:
                current.files[-1].hunks.append(HunkLines(*span, tuple(added)))
        elif line.startswith(_MARK):
            if current is not None:
                yield current
            sha, authored_at, committed_at = line[len(_MARK) :].split()
            current = CommitHunks(sha.decode(), int(authored_at), int(committed_at), [])
        elif current is None:
            continue
        elif line.startswith(b"diff --git "):
            current.files.append(FileHunks())
        elif match := _HUNK.match(line):
            span = int(match[1]), int(match[2] or 1), int(match[3])
            remaining_old, remaining_new = span[1], int(match[4] or 1)
            added = []
        elif current.files:
            _add_header(current.files[-1], line)
    if current is not None:
        yield current


def _add_header(file: FileHunks, line: bytes) -> None:
    if line.startswith(b"rename from "):
        file.old_path = unquote(decode(line[12:]))
    elif line.startswith(b"rename to "):
        file.path = unquote(decode(line[10:]))
    elif line.startswith(b"deleted file mode "):
        file.is_deleted = True
    elif line.startswith((b"--- ", b"+++ ")):
        path = unquote(decode(line[4:]).removesuffix("\t"))
        if path != "/dev/null":
            file.path = path[2:]
