"""The commit that each line of a file comes from."""

import re
from os.path import normpath
from pathlib import Path

from msgspec import Struct

from backscroll.errors import RepositoryError, UsageError
from backscroll.git.process import decode, run_git, unquote
from backscroll.git.repository import Repository, find_commit, read_file
from backscroll.model.text import pluralize

_HEADER = re.compile(rb"([0-9a-f]{40}(?:[0-9a-f]{24})?) (\d+) (\d+)(?: \d+)?")
_BINARY_CHECK_BYTES = 8000  # as git does
# Git compares a new file with every file of its parent commit to find copies. It takes 0.8 s for this many
# lines, multiplied by files.
_MAX_COMPARED_LINES = 400_000


class BlamedLine(Struct, frozen=True):
    """One line of a file as it is now."""

    number: int  # from 1
    text: bytes
    sha: str | None  # None if it is not committed
    path: str  # file that contained the line in that commit, relative to the root


def blame(
    repository: Repository, file: Path, lines: tuple[int, int] | None = None, *, revision: str | None = None
) -> list[BlamedLine]:
    """Return the lines of a file with their commits. Follows moved and copied lines, ignores indentation.

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
        return [BlamedLine(number, text, None, path) for number, text in enumerate(texts, start=first)]
    compared = (last - first + 1) * _count_files(repository, revision)
    copies = ["-C", "-C"] if compared <= _MAX_COMPARED_LINES else ["-C"]
    # An empty value in the configuration does not clear the list of ignored commits, this option does.
    arguments = ["blame", "--no-ignore-revs-file", "-M", *copies, "-w", "--line-porcelain", "--no-progress"]
    arguments.append(f"-L{first},{last}")
    arguments += [revision] if revision is not None else []
    return _parse(run_git(repository.folder, *arguments, "--", path))


def _parse(output: bytes) -> list[BlamedLine]:
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
