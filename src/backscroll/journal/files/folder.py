"""Where the journal of a repository is."""

import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

from backscroll.git import Repository

__all__ = ["is_journal_path", "journal_folder", "lock_path"]

_UNSAFE = re.compile(r"[^\w.-]+")
_JOURNAL_FILE = re.compile(r"(?:^|/)(?:daily/\d{4}-\d{2}-\d{2}-journal|summaries/[a-z]+/[\w-]+-summary)\.md$")
_KEY_CHARS = 8


def journal_folder(
    repository: Repository,
    *,
    named: Path | None,
    configured: Mapping[Path, Path],
    base: Path,
) -> Path:
    """Return the folder of a repository's journal.

    It is the one that the user named, else the one that the settings name for a checkout, else a folder
    below ``base`` with the name of the repository. All clones with the same first commit share that one.
    """
    if named is not None:
        return named.absolute()
    checkouts = [repository.folder, *repository.checkouts]
    for checkout, folder in configured.items():
        if any(checkout.resolve() == path.resolve() for path in checkouts):
            return repository.folder / folder
    key = repository.root_commit or sha256(str(repository.git_folder).encode()).hexdigest()
    existing = sorted(base.glob(f"*-{key[:_KEY_CHARS]}")) if base.is_dir() else []
    return existing[0] if existing else base / f"{_name(repository)}-{key[:_KEY_CHARS]}"


def lock_path(folder: Path, base: Path) -> Path:
    """Return the lock file of a journal, beside the archive: the journal may be in a repository."""
    return base / "locks" / f"{sha256(str(folder.resolve()).encode()).hexdigest()[:16]}.lock"


def is_journal_path(path: str, repository: Repository, folder: Path) -> bool:
    """Return whether a tracked path belongs to the journal."""
    try:
        inside = folder.resolve().relative_to(repository.folder.resolve())
    except ValueError:
        return _JOURNAL_FILE.search(path) is not None
    return PurePosixPath(path).is_relative_to(PurePosixPath(inside.as_posix()))


def _name(repository: Repository) -> str:
    folder = repository.git_folder.parent if repository.git_folder.name == ".git" else repository.git_folder
    return _UNSAFE.sub("-", folder.name.removesuffix(".git")).strip("-.") or "repository"
