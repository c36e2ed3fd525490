"""Files and folders of a repository: in the checkout, or in a commit."""

import os
from pathlib import Path, PurePosixPath

from msgspec import Struct

from backscroll.errors import RepositoryError
from backscroll.git.process import decode, run_git
from backscroll.git.repository import Repository

__all__ = ["FolderEntry", "file_size", "list_folder", "list_paths", "read_file"]


class FolderEntry(Struct, frozen=True):
    """A file or folder in a commit."""

    path: str  # relative to the root
    is_folder: bool
    size: int | None  # bytes; None if it is not a file


def read_file(repository: Repository, path: str, revision: str | None) -> bytes:
    """Return a tracked file as it is in the checkout, or in a commit.

    Links are not followed: a link has its target as content, and a path through a linked folder is not in the
    repository. Raises `RepositoryError`.
    """
    if revision is not None:
        sha = _blob(repository, path, revision)
        return run_git(repository.folder, "cat-file", "blob", sha)
    file = _tracked_file(repository, path)
    try:
        return os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes()
    except OSError as error:
        raise RepositoryError(f"{path} cannot be read: {error.strerror}.", repository.folder) from error


def file_size(repository: Repository, path: str, revision: str | None) -> int:
    """Return the size of a tracked file in bytes. Raises `RepositoryError`."""
    if revision is not None:
        sha = _blob(repository, path, revision)
        return int(run_git(repository.folder, "cat-file", "-s", sha))
    return _tracked_file(repository, path).lstat().st_size


def list_folder(repository: Repository, path: str, revision: str) -> list[FolderEntry]:
    """Return the entries of a folder in a commit, folders first; none if it is not a folder."""
    named = ["--", f"{path}/"] if path else []
    output = run_git(repository.folder, "--literal-pathspecs", "ls-tree", "-l", "-z", revision, *named)
    entries: list[FolderEntry] = []
    for line in decode(output).split("\0"):
        facts, tab, name = line.partition("\t")
        if tab:
            kind, size = facts.split()[1], facts.split()[3]
            entries.append(FolderEntry(name, kind == "tree", int(size) if size.isdigit() else None))
    return sorted(entries, key=lambda entry: (not entry.is_folder, entry.path))


def list_paths(repository: Repository, revision: str) -> set[str]:
    """Return the paths of all files in a commit."""
    output = run_git(repository.folder, "ls-tree", "-r", "-z", "--name-only", revision)
    return set(decode(output).split("\0")) - {""}


def _blob(repository: Repository, path: str, revision: str) -> str:
    """Return the hash of a file's content in a commit."""
    entry = run_git(repository.folder, "--literal-pathspecs", "ls-tree", "-z", revision, "--", path)
    if not entry:
        raise RepositoryError(f"{path} is not in the commit {revision}.", repository.folder)
    kind, sha = decode(entry).split()[1:3]
    if kind != "blob":
        raise _not_a_file(repository, path)
    return sha


def _tracked_file(repository: Repository, path: str) -> Path:
    """Return a tracked file in the checkout. Raises `RepositoryError` if it is none, or is elsewhere."""
    folder = repository.folder
    file = folder / path
    try:
        root = folder.resolve()
        if file.resolve() == root:
            raise _not_a_file(repository, path)
        if not file.parent.resolve().is_relative_to(root):
            raise RepositoryError(f"{path} is not in {folder}.", folder)
        is_link, is_folder = file.is_symlink(), file.is_dir()
        exists = is_link or file.exists()
    except OSError as error:  # for example a name that is too long
        raise RepositoryError(f"{path} cannot be read: {error.strerror}.", folder) from error
    if is_folder and not is_link:
        raise _not_a_file(repository, path)
    if not run_git(folder, "ls-files", "-z", "--cached", "--", f":(literal){path}"):
        if (submodule := _submodule(folder, path)) is not None:
            raise RepositoryError(
                f"{path} is in the submodule {submodule}, a repository of its own.",
                folder,
                hint=f"Pass --repo {folder / submodule}.",
            )
        if exists:
            raise RepositoryError(
                f"{path} is not tracked by git. Run 'git add {path}' to track it.",
                folder,
            )
        raise RepositoryError(f"{path} is not a file of {folder}.", folder)
    if not exists:
        raise RepositoryError(
            f"{path} was deleted from the checkout.",
            folder,
            hint="Pass --ref HEAD to see it as it was committed.",
        )
    if not is_link and not file.is_file():  # for example a named pipe
        raise RepositoryError(f"{path} is not a file.", folder)
    return file


def _submodule(folder: Path, path: str) -> str | None:
    """Return the submodule that contains a file, None if there is none."""
    for parent in PurePosixPath(path).parents:
        if parent.name:
            entry = run_git(folder, "ls-files", "-z", "--stage", "--", f":(literal){parent}")
            if entry.startswith(b"160000 "):
                return str(parent)
    return None


def _not_a_file(repository: Repository, path: str) -> RepositoryError:
    named = repository.folder if path == "." else path
    return RepositoryError(f"{named} is a folder. Name a file.", repository.folder)
