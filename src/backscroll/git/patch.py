"""Size of a commit's changes, and an id of its content that a rebase keeps."""

import re
from hashlib import sha256

from msgspec import Struct

from backscroll.errors import RepositoryError
from backscroll.git.process import decode, run_git
from backscroll.git.repository import Repository

__all__ = ["FileSize", "is_reachable", "patch_id", "read_sizes"]

_OPTIONS = (
    "diff-tree",
    "--no-commit-id",
    "--root",
    "-r",
    "-M",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
)
_HUNK = re.compile(rb"^@@ [^@]* @@.*$", re.MULTILINE)
_BLOB_IDS = re.compile(rb"^index [0-9a-f]+\.\.[0-9a-f]+", re.MULTILINE)
_ID_CHARS = 16


class FileSize(Struct, frozen=True):
    """Added and removed lines of one file in a commit; None for a binary file."""

    path: str
    added: int | None
    removed: int | None


def read_sizes(repository: Repository, sha: str) -> list[FileSize]:
    """Return the changed files of a commit, in git's order. A merge has none."""
    fields = iter(decode(run_git(repository.folder, *_OPTIONS, "--numstat", "-z", sha)).split("\0"))
    sizes: list[FileSize] = []
    for field in fields:
        added, _, rest = field.partition("\t")
        removed, tab, path = rest.partition("\t")
        if not tab:
            continue
        if not path:  # renamed: the old and the new path follow
            next(fields)
            path = next(fields)
        sizes.append(FileSize(path, *(int(n) if n.isdigit() else None for n in (added, removed))))
    return sizes


def patch_id(repository: Repository, sha: str) -> str:
    """Return an id of the lines that a commit adds and removes. Line numbers and context do not count."""
    patch = run_git(repository.folder, *_OPTIONS, "-p", "-U0", "--full-index", sha)
    # A binary file has no lines: its blob ids stand for its content.
    if b"\nBinary files " not in patch:
        patch = _BLOB_IDS.sub(b"index", patch)
    return sha256(_HUNK.sub(b"@@", patch)).hexdigest()[:_ID_CHARS]


def is_reachable(repository: Repository, sha: str) -> bool:
    """Return whether a local branch or HEAD contains a commit. False if it does not exist."""
    head = ["HEAD"] if repository.has_commits else []
    try:
        # Lists the commits that only this one reaches: none if a branch contains it.
        output = run_git(repository.folder, "rev-list", "-1", sha, "--not", "--branches", *head, "--")
    except RepositoryError:
        return False
    return not output.strip()
