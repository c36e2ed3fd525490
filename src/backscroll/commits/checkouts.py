"""Folders of sessions: which are checkouts of the repository, in this clone or another one."""

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from backscroll.archive.archive import Archive
from backscroll.commits.commit_graph import CommitGraph
from backscroll.commits.paths import base_name, implied_root, is_inside, repository_names
from backscroll.commits.scan import CommitCall, SessionWork, calls_with_hashes
from backscroll.git.log import read_commits
from backscroll.git.repository import Repository, is_clone, known_commits

_MAX_COMPARED_CALLS = 20  # of a folder, newest first
_MAX_CLOCK_ERROR_MS = 24 * 3600 * 1000
_MIN_SAME_FILES = 2  # two projects often have one path in common


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


class WorkspaceMatch(NamedTuple):
    """How a session's folder relates to the repository."""

    strength: float
    detail: str
    is_worktree: bool = False


class WorkspaceIndex:
    """Folders of sessions, compared with the checkouts of the repository."""

    def __init__(self, graph: CommitGraph, sessions: Sequence[SessionWork], relations: CheckoutIndex) -> None:
        self._graph = graph
        self._relations = relations
        self._sessions = sessions
        repository = graph.repository
        self._checkouts = [str(path) for path in repository.checkouts]
        self._main = _main_checkout(repository)
        self._names = repository_names(repository)
        self._matches: dict[int, WorkspaceMatch | None] = {}

    @cached_property
    def _tracked(self) -> dict[str, set[str]]:
        """Paths in folders of the repository, by name. Only needed for sessions in other clones."""
        found: dict[str, set[str]] = defaultdict(set)
        for sha in self._graph.with_lines:
            for path in changed_paths(self._graph, sha):
                if "/" in path:
                    found[base_name(path)].add(path)
        return found

    def match(self, session: int) -> WorkspaceMatch | None:
        """Return how a session's folder relates to the repository; None if it does not."""
        if session not in self._matches:
            self._matches[session] = self._find(self._sessions[session])
        return self._matches[session]

    def is_foreign(self, session: int, path: str) -> bool:
        """Return whether a file that a session changed is in another repository."""
        return self._relations.of_edit(self._sessions[session], path) is Relation.OTHER

    def is_own_root(self, session: int, root: str) -> bool:
        """Return whether a folder is a checkout of the repository, in this clone or another one."""
        if not root:
            return self.match(session) is not None
        return self._relations.of_folder(root) is Relation.SAME or base_name(root) in self._names

    def is_checkout(self, session: int, root: str) -> bool:
        """Return whether a root, as implied by an edited path, is a checkout of the repository."""
        if root:
            return root in self._checkouts
        folders = self._sessions[session].folders
        return any(is_inside(folder, checkout) for folder in folders for checkout in self._checkouts)

    def _find(self, session: SessionWork) -> WorkspaceMatch | None:
        folders = sorted(session.folders)
        relations = {folder: self._relations.of_folder(folder) for folder in folders}
        inside = [
            (checkout, folder)
            for folder in folders
            for checkout in self._checkouts
            if is_inside(folder, checkout) and relations[folder] is Relation.SAME
        ]
        if inside:
            # The innermost checkout: a worktree can be in a folder of the main checkout.
            checkout, folder = max(inside, key=lambda pair: len(pair[0]))
            return WorkspaceMatch(1.0, f"worked in {folder}", is_worktree=checkout != self._main)
        for path in session.edited_paths:
            checkout = next((checkout for checkout in self._checkouts if is_inside(path, checkout)), "")
            if checkout and self._relations.of_edit(session, path) is Relation.SAME:
                return WorkspaceMatch(1.0, f"changed files in {checkout}", is_worktree=checkout != self._main)
        clone = next((folder for folder in folders if relations[folder] is Relation.SAME), None)
        if clone is not None:
            return WorkspaceMatch(0.8, f"worked in {clone}, a clone of the repository")
        unknown = [folder for folder in folders if relations[folder] is Relation.UNKNOWN]
        root = self._same_files(session, unknown)
        if root is not None:
            return WorkspaceMatch(0.8, f"worked in {root}, which has the same files")
        named = next((folder for folder in unknown if base_name(folder) in self._names), None)
        return WorkspaceMatch(0.5, f"worked in {named}") if named is not None else None

    def _same_files(self, session: SessionWork, folders: Sequence[str]) -> str | None:
        """Return the root of a folder in which the session changed files that the repository has too."""
        found: dict[str, set[str]] = defaultdict(set)
        for path in session.edited_paths if folders else ():
            for tracked in self._tracked.get(base_name(path), ()):
                root = implied_root(path, tracked)
                if root and any(is_inside(folder, root) for folder in folders):
                    found[root].add(path)
                    if len(found[root]) >= _MIN_SAME_FILES:
                        return root
        return None


def _main_checkout(repository: Repository) -> str:
    main = repository.git_folder.parent if repository.git_folder.name == ".git" else repository.folder
    return str(main)


def changed_paths(graph: CommitGraph, sha: str) -> Iterable[str]:
    """Return the paths that a commit changes, also those before a rename."""
    return (path for file in graph.files(sha) for path in (file.path, file.old_path) if path is not None)
