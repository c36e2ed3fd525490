"""Find commits that the git hook did not report.

Git runs no hook for merges, `git am` and `git rebase --apply`, and other programs run none at all. The reflog
changes with every commit. A repository whose reflog has not changed costs one stat per checkout.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.errors import RepositoryError
from backscroll.model import Workspace
from backscroll.model.code.hooks import HookCommit

if TYPE_CHECKING:
    from backscroll.archive import Archive

__all__ = ["find_new_commits", "repository_fingerprint"]

_OVERLAP_SECONDS = 120  # clocks may differ, and the time of a commit is set before it is made


def find_new_commits(archive: Archive) -> int:
    """Add the commits that repositories with the hook got since they were last checked."""
    count = 0
    for path, known in archive.hooks.commits.repositories().items():
        checked, _, before = known.partition(" ")
        reflogs = _reflogs(path)
        if not reflogs or reflogs == before:
            continue
        current = repository_fingerprint(Path(path))
        if checked:  # otherwise it has been known only since now
            seconds, _, head = checked.partition(":")
            commits = _commits_since(Path(path), int(seconds) - _OVERLAP_SECONDS, head)
            exclusions = archive.units.exclusions
            count += archive.hooks.commits.add(
                [one for one in commits if not exclusions.is_excluded(Workspace(one.folder))]
            )
        archive.hooks.commits.set_fingerprint(path, current)
    return count


def repository_fingerprint(git_folder: Path) -> str:
    """Return time, HEAD and reflogs: a later sync looks for commits that were made since."""
    from backscroll.git.process import decode, output_or_empty  # start-up time

    head = decode(output_or_empty(git_folder, "rev-parse", "--quiet", "--verify", "HEAD")).strip()
    return f"{int(time.time())}:{head} {_reflogs(str(git_folder))}"


def _reflogs(git_folder: str) -> str:
    """Return sizes and times of the reflogs of all checkouts; empty if there are none."""
    folders = [git_folder]
    with suppress(OSError):
        folders += [entry.path for entry in os.scandir(os.path.join(git_folder, "worktrees"))]  # noqa: PTH118
    states = []
    for folder in sorted(folders):
        try:
            state = os.stat(os.path.join(folder, "logs", "HEAD"))  # noqa: PTH116, PTH118
        except OSError:
            continue
        states.append(f"{state.st_size}:{state.st_mtime_ns}")
    return ",".join(states)


def _commits_since(git_folder: Path, seconds: int, head: str) -> list[HookCommit]:
    """Return the commits of branches and HEAD since a time, except merges and those that a head contains."""
    from backscroll.git import process, repository  # start-up time

    try:
        known = [f"^{head}"] if head and repository.known_commits(git_folder, [head]) else []
        output = process.run_git(
            git_folder,
            "log",
            "--branches",
            "HEAD",
            *known,
            "--no-merges",
            f"--since=@{seconds}",
            "--format=%H %ct",
        )
        checkout = process.decode(
            process.run_git(git_folder, "worktree", "list", "--porcelain")
        ).splitlines()[:1]
    except RepositoryError:
        return []  # it has no commit yet, or it is damaged
    folder = checkout[0].removeprefix("worktree ") if checkout else str(git_folder)
    return [
        HookCommit(repository=str(git_folder), sha=sha, at=int(at) * 1000, folder=folder, event="found")
        for sha, at in (line.split() for line in process.decode(output).splitlines())
    ]
