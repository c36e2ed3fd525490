"""A repository: its checkouts, branch and remotes, its commits, files and folders."""

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from msgspec import Struct

from backscroll.errors import CommitNotFoundError, RepositoryError
from backscroll.git.process import decode, output_or_empty, run_git, stream_git


class Repository(Struct, frozen=True, dict=True):
    """A repository, in the checkout or bare folder that it was opened in."""

    folder: Path  # root of the checkout; the repository itself if it is bare
    git_folder: Path  # shared by all checkouts
    is_bare: bool
    checkouts: tuple[Path, ...]  # roots of all checkouts: the main one and its worktrees
    branch: str | None  # None if HEAD is detached
    has_commits: bool  # False if HEAD names a branch without commits
    remotes: tuple[str, ...]  # URLs
    has_branches: bool = False  # with commits

    @cached_property  # git reads the whole history for it
    def root_commit(self) -> str | None:
        """The oldest commit without a parent that HEAD reaches; the same in every clone."""
        if not self.has_commits and not self.has_branches:
            return None
        return _root_commit(self.folder, "HEAD" if self.has_commits else "--branches")


def open_repository(folder: Path) -> Repository:
    """Return the repository that contains a folder. Raises `RepositoryError` if there is none."""
    folder = folder.absolute()
    output = run_git(folder, "rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--git-common-dir")
    is_bare, is_inside, common = decode(output).split("\n")[:3]
    git_folder = _resolve(folder / common)
    if is_inside == "true":
        top = Path(decode(run_git(folder, "rev-parse", "--show-toplevel")).removesuffix("\n"))
    elif is_bare == "true" or git_folder.name != ".git":
        top = git_folder
    else:  # inside of .git
        top = git_folder.parent
    head = decode(output_or_empty(folder, "symbolic-ref", "--quiet", "HEAD")).strip()
    branch = head.removeprefix("refs/heads/")
    return Repository(
        folder=top,
        git_folder=git_folder,
        is_bare=is_bare == "true",
        checkouts=tuple(dict.fromkeys([top, *_checkouts(folder)])) if is_bare != "true" else (),
        branch=branch or None,
        has_commits=_has_commits(folder, git_folder, branch),
        remotes=tuple(dict.fromkeys(remote_urls(folder))),
        has_branches=bool(run_git(folder, "for-each-ref", "--count=1", "refs/heads")),
    )


def _has_commits(folder: Path, git_folder: Path, branch: str) -> bool:
    """Return whether HEAD is a commit. Raises `RepositoryError` if it is damaged."""
    if output_or_empty(folder, "rev-parse", "--quiet", "--verify", "HEAD"):
        run_git(folder, "log", "-1", "--format=%H", "HEAD", "--")  # fails with a reason
        return True
    if not branch or (git_folder / "refs" / "heads" / branch).is_file():
        raise RepositoryError(
            f"The branch of {folder} is damaged.",
            folder,
            hint="Run 'git fsck' to see the reason, or clone it again.",
        )
    return False


def find_commit(repository: Repository, revision: str) -> str:
    """Return the full hash of a commit. Raises `CommitNotFoundError`."""
    if not repository.has_commits and not repository.has_branches:
        raise CommitNotFoundError("The repository has no commits yet.", revision)
    if not repository.has_commits and revision == "HEAD":
        raise CommitNotFoundError(
            f"HEAD of {repository.folder} names the branch '{repository.branch}', which has no commits.",
            revision,
            hint="Name another branch. Run 'git branch' to see them.",
        )
    found = b""
    if revision and not revision.startswith("-"):
        found = output_or_empty(
            repository.folder,
            "rev-parse",
            "--quiet",
            "--verify",
            "--end-of-options",
            f"{revision}^{{commit}}",
        )
    # Git before 2.30 prints the option itself.
    lines = [line for line in decode(found).split() if not line.startswith("-")]
    if not lines:
        raise CommitNotFoundError(
            f"No commit of {repository.folder} matches '{revision}'.",
            revision,
            hint="Run 'backscroll commits' to see the commits.",
        )
    return lines[-1]


def known_commits(folder: Path, hashes: Sequence[str]) -> list[str]:
    """Return those of the hashes, full or abbreviated, that are commits of the repository at a folder."""
    checks = stream_git(folder, "cat-file", "--batch-check", lines=[f"{one}^{{commit}}" for one in hashes])
    return [one for one, line in zip(hashes, checks, strict=False) if line.split()[1:2] == [b"commit"]]


def is_reachable(repository: Repository, sha: str) -> bool:
    """Return whether a local branch or HEAD contains a commit. False if it does not exist."""
    head = ["HEAD"] if repository.has_commits else []
    try:
        # Lists the commits that only this one reaches: none if a branch contains it.
        output = run_git(repository.folder, "rev-list", "-1", sha, "--not", "--branches", *head, "--")
    except RepositoryError:
        return False
    return not output.strip()


def is_clone(repository: Repository, folder: Path) -> bool | None:
    """Return whether another repository, at a folder, has the same history; None if it is not known.

    A shallow or partial clone does not contain all commits, so that a missing one proves nothing.
    """
    try:
        output = run_git(folder, "rev-parse", "--git-common-dir", "--is-shallow-repository")
        common, is_shallow = decode(output).split("\n")[:2]
        git_folder = _resolve(folder / common)
        if git_folder == repository.git_folder:
            return True
        head = decode(output_or_empty(folder, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")).strip()
        is_partial = _is_partial(git_folder) or _is_partial(repository.git_folder)
        if head and not _is_partial(repository.git_folder) and known_commits(repository.folder, [head]):
            return True
        root = repository.root_commit
        if root is not None and not _is_partial(git_folder) and known_commits(folder, [root]):
            return True
    except RepositoryError:  # damaged, or of another user
        return None
    is_incomplete = is_partial or is_shallow == "true" or (repository.git_folder / "shallow").exists()
    return None if is_incomplete else False


def _is_partial(git_folder: Path) -> bool:
    """Return whether git would fetch missing objects from a server."""
    return any((git_folder / "objects" / "pack").glob("*.promisor"))


def _checkouts(folder: Path) -> list[Path]:
    output = decode(run_git(folder, "worktree", "list", "--porcelain"))
    blocks = [block.splitlines() for block in output.split("\n\n") if block.strip()]
    return [Path(block[0].removeprefix("worktree ")) for block in blocks if "bare" not in block]


def _root_commit(folder: Path, refs: str) -> str | None:
    roots = decode(run_git(folder, "rev-list", "--max-parents=0", refs)).split()
    return roots[-1] if roots else None


def remote_urls(folder: Path) -> list[str]:
    """Return the URLs of the remotes of the repository at a folder; none if it has none."""
    lines = decode(output_or_empty(folder, "config", "--get-regexp", r"^remote\..*\.url$")).splitlines()
    return [line.partition(" ")[2] for line in lines]


def _resolve(path: Path) -> Path:
    return Path(path).resolve()


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
            raise RepositoryError(f"{path} is not tracked by git. Run 'git add {path}' to track it.", folder)
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
