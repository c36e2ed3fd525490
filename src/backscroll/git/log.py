"""Commits, and the lines that each one adds."""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from backscroll.git.process import decode, run_git, stream_git, unquote
from backscroll.git.repository import Repository

__all__ = ["Commit", "FileChange", "list_commits", "list_file_commits", "read_changes", "read_commits"]

_FIELDS = ("%H", "%P", "%an", "%at", "%ct", "%S", "%B")
_FORMAT = f"--format={'%x00'.join(_FIELDS)}"
_HASH = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MAX_FILE_LINES = 20_000  # added lines of a file that are read; larger files are generated or data


class Commit(Struct, frozen=True):
    """A commit without its changes."""

    sha: str
    parents: tuple[str, ...]
    author: str
    authored_at: int  # seconds since 1970; stays the same in a rebase, a cherry-pick and an amend
    committed_at: int
    ref: str  # the branch that the commit was first reached from
    message: str

    @property
    def subject(self) -> str:
        return self.message.strip().partition("\n")[0].strip()

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1


class FileChange(Struct, frozen=True):
    """Changes of one file in a commit."""

    path: str  # relative to the root of the repository; the old path if the file is deleted
    old_path: str | None  # if the file is renamed
    is_deleted: bool
    added: tuple[bytes, ...]  # lines, without newlines


def list_commits(repository: Repository, *, ref: str | None = None) -> list[Commit]:
    """Return all commits of the local branches and HEAD, or those that a ref reaches. Newest first."""
    if ref is None and not repository.has_commits:
        return []
    refs = [ref] if ref is not None else ["HEAD", "--branches"]
    return _log(repository, "--date-order", *refs, "--")


def list_file_commits(repository: Repository, paths: Iterable[str], *, ref: str) -> list[Commit]:
    """Return the commits that a ref reaches and that change one of the files. Newest first."""
    return _log(repository, "--full-history", ref, "--", *(f":(top,literal){path}" for path in paths))


def read_commits(repository: Repository, shas: Sequence[str]) -> list[Commit]:
    """Return the commits with these hashes. Those that the clone does not have are omitted."""
    if not shas:
        return []
    arguments = ("log", "--no-walk=unsorted", "--ignore-missing", "--stdin", "-z", _FORMAT)
    return _parse(b"\n".join(stream_git(repository.folder, *arguments, lines=shas)))


def _log(repository: Repository, *arguments: str) -> list[Commit]:
    return _parse(run_git(repository.folder, "log", "-z", _FORMAT, *arguments))


def _parse(output: bytes) -> list[Commit]:
    values = decode(output).split("\0")
    count = len(_FIELDS)
    return [_commit(values[start : start + count]) for start in range(0, len(values) - count + 1, count)]


def _commit(values: Sequence[str]) -> Commit:
    sha, parents, author, authored_at, committed_at, ref, message = values
    return Commit(
        sha, tuple(parents.split()), author, int(authored_at), int(committed_at), ref, message.rstrip("\n")
    )


def read_changes(repository: Repository, shas: Sequence[str]) -> Iterator[tuple[str, list[FileChange]]]:
    """Yield the changes of commits in the given order, from one process. A merge has none."""
    if not shas:
        return
    arguments = (
        "--stdin",
        "--always",
        "--root",
        "-r",
        "-p",
        "-U0",
        "-M",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
    )
    lines = stream_git(repository.folder, "diff-tree", *arguments, "--ignore-submodules=all", lines=shas)
    sha: str | None = None
    changes: list[FileChange] = []
    file: _FileParser | None = None
    for line in lines:
        if file is not None and file.remaining_lines:
            file.add_content(line)
        elif line.startswith(b"diff --git "):
            if file is not None:
                changes.append(file.change())
            file = _FileParser(line)
        elif _HASH.fullmatch(line):
            if sha is not None:
                yield sha, changes if file is None else [*changes, file.change()]
            sha, changes, file = line.decode(), [], None
        elif file is not None:
            file.add_header(line)
    if sha is not None:
        yield sha, changes if file is None else [*changes, file.change()]


class _FileParser:
    """Collects the lines of one file in a patch."""

    def __init__(self, header: bytes) -> None:
        self._path = _same_path(header.removeprefix(b"diff --git "))
        self._old_path: str | None = None
        self._is_deleted = False
        self._added: list[bytes] = []
        self.remaining_lines = 0  # of the current hunk

    def add_header(self, line: bytes) -> None:
        """Process a line that is not content of the file."""
        if line.startswith(b"@@ "):
            _, old, new, *_ = line.split(b" ", 3)
            self.remaining_lines = _count(old) + _count(new)
        elif line.startswith(b"+++ "):
            path = _patch_path(line[4:])
            self._path = path if path is not None else self._path
        elif line.startswith(b"--- "):
            self._path = _patch_path(line[4:]) or self._path
        elif line.startswith(b"rename from "):
            self._old_path = unquote(decode(line[12:]))
        elif line.startswith(b"rename to "):
            self._path = unquote(decode(line[10:]))
        elif line.startswith(b"deleted file mode "):
            self._is_deleted = True

    def add_content(self, line: bytes) -> None:
        """Process a removed or added line."""
        if line.startswith(b"\\"):  # "\ No newline at end of file"
            return
        self.remaining_lines -= 1
        if line.startswith(b"+") and len(self._added) < _MAX_FILE_LINES:
            self._added.append(line[1:])

    def change(self) -> FileChange:
        return FileChange(self._path, self._old_path, self._is_deleted, tuple(self._added))


def _count(span: bytes) -> int:
    """Return the number of lines of one side of a hunk, such as ``+12,3``."""
    _, comma, count = span.partition(b",")
    return int(count) if comma else 1


def _same_path(paths: bytes) -> str:
    """Return the path of a header ``a/x b/x``. Renamed files have other lines with their paths."""
    text = decode(paths)
    half = text[: len(text) // 2]
    return unquote(half).removeprefix("a/")


def _patch_path(text: bytes) -> str | None:
    """Return the path of a ``+++`` or ``---`` line. None for a file that does not exist on this side."""
    path = unquote(decode(text).removesuffix("\t"))
    return None if path == "/dev/null" else path[2:]
