"""Find a repository: its checkouts, branch, first commit and remotes."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from backscroll.errors import CommitNotFoundError, RepositoryError
from backscroll.git.process import decode, output_or_empty, run_git, stream_git

__all__ = ["Repository", "find_commit", "is_clone", "known_commits", "open_repository", "remote_urls"]


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
