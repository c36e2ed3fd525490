"""Commits, the lines that each one adds, and the commit that each line of a file comes from."""

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from os.path import normpath
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from backscroll.errors import RepositoryError, UsageError
from backscroll.git.diff import PatchedFile
from backscroll.git.process import decode, run_git, stream_git, unquote
from backscroll.git.repository import Repository, find_commit, read_file
from backscroll.model.text import pluralize

_FIELDS = ("%H", "%P", "%an", "%at", "%ct", "%S", "%B")
_FORMAT = f"--format={'%x00'.join(_FIELDS)}"
_HASH = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MAX_FILE_LINES = 20_000  # added lines of a file that are read; larger files are generated or data
_DIFF = (
    *("diff-tree", "--stdin", "--always", "--root", "-r", "-p", "-U0"),
    *("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"),
)
_HEADER = re.compile(rb"([0-9a-f]{40}(?:[0-9a-f]{24})?) (\d+) (\d+)(?: \d+)?")
_BINARY_CHECK_BYTES = 8000  # as git does
# Git compares a new file with every file of its parent commit to find copies. It takes 0.8 s for this many
# lines, multiplied by files.
_MAX_COMPARED_LINES = 400_000


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
    if ref is not None:
        return _log(repository, "--date-order", ref, "--")
    if not repository.has_commits and not repository.has_branches:
        return []
    head = ["HEAD"] if repository.has_commits else []  # a new branch, or a bare repository without its branch
    return _log(repository, "--date-order", *head, "--branches", "--")


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
    if shas:
        lines = stream_git(repository.folder, *_DIFF, "-M", lines=shas)
        for sha, files in _parse_changes(lines):
            yield sha, [file.change() for file in files]


def read_modifications(
    repository: Repository, shas: Sequence[str], paths: Iterable[str]
) -> Iterator[tuple[str, list[FileChange] | None]]:
    """Yield the changes of some files in commits, in a third of the time of `read_changes`.

    None if a commit adds one of the files: only all of its changes show whether it was renamed.
    """
    if shas:
        limits = (f":(top,literal){path}" for path in paths)
        lines = stream_git(repository.folder, *_DIFF, "--no-renames", "--", *limits, lines=shas)
        for sha, files in _parse_changes(lines):
            has_new = any(file.is_new for file in files)
            yield sha, [file.change() for file in files] if not has_new else None


def _parse_changes(lines: Iterator[bytes]) -> Iterator[tuple[str, list["_FileParser"]]]:
    sha: str | None = None
    files: list[_FileParser] = []
    for line in lines:
        if line.startswith(b"@@ ") and files:
            files[-1].add_hunk(line, lines)
        elif line.startswith(b"diff --git "):
            files.append(_FileParser(_same_path(line.removeprefix(b"diff --git "))))
        elif _HASH.fullmatch(line):
            if sha is not None:
                yield sha, files
            sha, files = line.decode(), []
        elif files:
            files[-1].add_header(line)
    if sha is not None:
        yield sha, files


class _FileParser(PatchedFile):
    """Collects the lines of one file in a patch."""

    added: list[bytes] = msgspec.field(default_factory=list)

    def add_hunk(self, header: bytes, lines: Iterator[bytes]) -> None:
        """Take the removed and added lines of a hunk."""
        _, old, new, *_ = header.split(b" ", 3)
        remaining = _count(old) + _count(new)
        while remaining and (content := list(islice(lines, remaining))):
            if len(self.added) < _MAX_FILE_LINES:
                self.added += [line[1:] for line in content if line.startswith(b"+")]
            # "\\ No newline at end of file" is not counted.
            remaining = sum(line.startswith(b"\\") for line in content)

    def change(self) -> FileChange:
        return FileChange(self.path, self.old_path, self.is_deleted, tuple(self.added[:_MAX_FILE_LINES]))


def _count(span: bytes) -> int:
    """Return the number of lines of one side of a hunk, such as ``+12,3``."""
    _, comma, count = span.partition(b",")
    return int(count) if comma else 1


def _same_path(paths: bytes) -> str:
    """Return the path of a header ``a/x b/x``. Renamed files have other lines with their paths."""
    text = decode(paths)
    half = text[: len(text) // 2]
    return unquote(half).removeprefix("a/")


class BlamedLine(Struct, frozen=True):
    """One line of a file as it is now."""

    number: int  # from 1
    text: bytes
    sha: str | None  # None if it is not committed
    path: str  # file that contained the line in that commit, relative to the root


class TracedLine(NamedTuple):
    """One line of a file, with two answers to which commit it comes from."""

    origin: BlamedLine  # follows lines that were moved or copied, also from other files
    added: BlamedLine  # the commit that added the line to the file


def blame(
    repository: Repository, file: Path, lines: tuple[int, int] | None = None, *, revision: str | None = None
) -> list[TracedLine]:
    """Return the lines of a file with their commits. Ignores indentation.

    ``file`` is absolute or relative to the root of the checkout. Without a revision, the file is read from
    the checkout, with changes that are not committed. Raises `RepositoryError`, or `UsageError` if the lines
    are not in the file.
    """
    path = _tracked_path(repository, file)
    if revision is None and repository.is_bare:
        revision = find_commit(repository, "HEAD")
    content = read_file(repository, path, revision)
    if b"\0" in content[:_BINARY_CHECK_BYTES]:
        raise RepositoryError(f"{path} is a binary file. Only text has lines.", repository.folder)
    first, last = _checked_range(path, content, lines)
    if not content:
        return []
    if revision is None and not _is_committed(repository, path):
        texts = content.removesuffix(b"\n").split(b"\n")[first - 1 : last]
        blamed = [BlamedLine(number, text, None, path) for number, text in enumerate(texts, start=first)]
        return [TracedLine(line, line) for line in blamed]
    compared = (last - first + 1) * _count_files(repository, revision)
    copies = ["-C", "-C"] if compared <= _MAX_COMPARED_LINES else ["-C"]
    selected = [f"-L{first},{last}", *([revision] if revision is not None else []), "--", path]
    with ThreadPoolExecutor(max_workers=1) as executor:
        # An empty value in the configuration does not clear the list of ignored commits, this option does.
        run = partial(run_git, repository.folder, "blame", "--no-ignore-revs-file", "--line-porcelain", "-w")
        added = executor.submit(run, *selected)
        origins = _parse_blame(run("-M", *copies, *selected))
        return [TracedLine(*each) for each in zip(origins, _parse_blame(added.result()), strict=True)]


def _parse_blame(output: bytes) -> list[BlamedLine]:
    found: list[BlamedLine] = []
    sha, number, path = b"", 0, ""
    for line in output.split(b"\n"):
        if line.startswith(b"\t"):
            is_committed = bool(sha.strip(b"0"))
            found.append(BlamedLine(number, line[1:], sha.decode() if is_committed else None, path))
        elif header := _HEADER.fullmatch(line):
            sha, number = header[1], int(header[3])
        elif line.startswith(b"filename "):
            path = unquote(decode(line[9:]))
    return found


def _tracked_path(repository: Repository, file: Path) -> str:
    """Return the path of a file relative to the root."""
    path = Path(normpath(file))
    if not file.is_absolute():
        if path.parts[:1] == ("..",):
            raise RepositoryError(f"{file} is not in {repository.folder}.", repository.folder)
        return path.as_posix()
    for folder in (path, file.parent.resolve() / file.name):  # git gives the root without symbolic links
        if folder.is_relative_to(repository.folder):
            return folder.relative_to(repository.folder).as_posix()
    raise RepositoryError(f"{file} is not in {repository.folder}.", repository.folder)


def _checked_range(path: str, content: bytes, lines: tuple[int, int] | None) -> tuple[int, int]:
    count = content.count(b"\n") + (not content.endswith(b"\n") and bool(content))
    if lines is None:
        return 1, count
    first, last = lines
    if first < 1 or last < first:
        raise UsageError(f"{first}-{last} is not a range of lines. Lines count from 1.")
    if first > count:
        raise UsageError(f"{path} has {pluralize(count, 'line')}, not {first:,}.")
    return first, min(last, count)


def _is_committed(repository: Repository, path: str) -> bool:
    if not repository.has_commits:
        return False
    return bool(run_git(repository.folder, "--literal-pathspecs", "ls-tree", "-z", "HEAD", "--", path))


def _count_files(repository: Repository, revision: str | None) -> int:
    names = run_git(repository.folder, "ls-tree", "-r", "-z", "--name-only", revision or "HEAD")
    return names.count(b"\0")
