"""Decide which folders of sessions are checkouts of the repository, in this clone or another one."""

import os
from enum import IntEnum
from functools import cached_property
from itertools import islice
from pathlib import Path

from backscroll.archive import Archive
from backscroll.commits.paths import is_inside
from backscroll.commits.scan import CommitCall
from backscroll.commits.sessions import SessionWork, calls_with_hashes
from backscroll.git import Repository, read_commits
from backscroll.git.repository import is_clone, known_commits

__all__ = ["CheckoutIndex", "Relation"]

_MAX_COMPARED_CALLS = 20  # of a folder, newest first
_MAX_CLOCK_ERROR_MS = 24 * 3600 * 1000


class Relation(IntEnum):
    """Relation of a folder to the repository."""

    OTHER = 0  # in another repository
    UNKNOWN = 1  # for example deleted
    SAME = 2  # in a checkout of the repository


class CheckoutIndex:
    """Relations of folders to a repository."""

    def __init__(self, archive: Archive, repository: Repository) -> None:
        self._archive = archive
        self._repository = repository
        self._checkouts = {str(path.resolve()) for path in repository.checkouts}
        self._folders: dict[str, Relation] = {}
        self._roots: dict[str, str | None] = {}  # folder: root of the repository that contains it
        self._clones: dict[str, Relation] = {}  # by root
        self._proven: dict[str, bool] = {}  # folder of a commit call: the repository has one of its commits

    def of_folder(self, folder: str) -> Relation:
        """Return the relation of a folder.

        A folder that does not exist is a checkout if a session made a commit of the repository in it.
        """
        if folder not in self._folders:
            relation = self._on_disk(folder)
            if relation is Relation.UNKNOWN and self._has_commit(folder):
                relation = Relation.SAME
            self._folders[folder] = relation
        return self._folders[folder]

    def of_session(self, session: SessionWork) -> Relation:
        """Return the best relation of the folders that a session worked in."""
        return max(map(self.of_folder, session.folders), default=Relation.UNKNOWN)

    def of_edit(self, session: SessionWork, path: str) -> Relation:
        """Return the relation of a file that a session changed."""
        if not path.startswith("/") and path[1:2] != ":":
            return self.of_session(session)
        relation = self.of_folder(path[: path.rfind("/")] or "/")
        if relation is Relation.UNKNOWN:  # the folder of the file was deleted
            inside = (folder for folder in session.folders if is_inside(path, folder))
            if any(self.of_folder(folder) is Relation.OTHER for folder in inside):
                return Relation.OTHER
        return relation

    def _on_disk(self, folder: str) -> Relation:
        root = self._root(folder)
        if root is None:
            return Relation.UNKNOWN
        if root not in self._clones:
            self._clones[root] = self._compare(root)
        relation = self._clones[root]
        if relation is Relation.OTHER and not Path(folder).is_dir():
            return Relation.UNKNOWN  # perhaps it was a repository of its own
        return relation

    def _root(self, folder: str) -> str | None:
        """Return the root of the repository that contains a folder, without symbolic links."""
        if not folder.startswith("/") or "\0" in folder:
            return None  # of another system
        if folder not in self._roots:
            if os.path.lexists(f"{folder}/.git"):
                self._roots[folder] = str(Path(folder).resolve())
            else:
                parent = folder[: folder.rfind("/")]
                self._roots[folder] = self._root(parent) if parent else None
        return self._roots[folder]

    def _compare(self, root: str) -> Relation:
        if root in self._checkouts:
            return Relation.SAME
        found = is_clone(self._repository, Path(root))
        return Relation.UNKNOWN if found is None else Relation.SAME if found else Relation.OTHER

    @cached_property
    def _calls(self) -> dict[str, list[CommitCall]]:
        return calls_with_hashes(self._archive)

    def _has_commit(self, folder: str) -> bool:
        """Return whether a session made a commit of the repository in a folder or above."""
        while folder:
            if folder in self._calls:
                if folder not in self._proven:
                    self._proven[folder] = self._has_made_commit(self._calls[folder])
                if self._proven[folder]:
                    return True
            folder = folder[: max(0, folder.rfind("/"))]
        return False

    def _has_made_commit(self, calls: list[CommitCall]) -> bool:
        newest = islice(reversed(calls), _MAX_COMPARED_CALLS)
        times = {printed: call.at for call in newest for printed in call.hashes}
        known = known_commits(self._repository.folder, [*times])
        for commit in read_commits(self._repository, known):
            committed_at = commit.committed_at * 1000
            for printed, at in times.items():
                # The time excludes an equal abbreviation in another repository.
                is_near = at is None or abs(committed_at - at) <= _MAX_CLOCK_ERROR_MS
                if is_near and commit.sha.startswith(printed):
                    return True
        return False
