"""Folders of sessions, compared with the checkouts of the repository."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from backscroll.commits.commit_graph import CommitGraph
from backscroll.commits.paths import base_name, implied_root, is_inside, repository_names
from backscroll.commits.sessions import SessionWork
from backscroll.git import Repository

__all__ = ["WorkspaceIndex", "WorkspaceMatch", "changed_paths"]


class WorkspaceMatch(NamedTuple):
    """How a session's folder relates to the repository."""

    strength: float
    detail: str
    is_worktree: bool = False


class WorkspaceIndex:
    """Folders of sessions, compared with the checkouts of the repository."""

    def __init__(self, graph: CommitGraph, sessions: Sequence[SessionWork]) -> None:
        self._graph = graph
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

    def is_own_root(self, session: int, root: str) -> bool:
        """Return whether a folder is a checkout of the repository, in this clone or another one."""
        if root in self._checkouts or base_name(root) in self._names:
            return True
        return not root and self.match(session) is not None

    def is_checkout(self, session: int, root: str) -> bool:
        """Return whether a root, as implied by an edited path, is a checkout of the repository."""
        if root:
            return root in self._checkouts
        folders = self._sessions[session].folders
        return any(is_inside(folder, checkout) for folder in folders for checkout in self._checkouts)

    def _find(self, session: SessionWork) -> WorkspaceMatch | None:
        inside = [
            (checkout, folder)
            for folder in sorted(session.folders)
            for checkout in self._checkouts
            if is_inside(folder, checkout)
        ]
        if inside:
            # The innermost checkout: a worktree can be in a folder of the main checkout.
            checkout, folder = max(inside, key=lambda pair: len(pair[0]))
            return WorkspaceMatch(1.0, f"worked in {folder}", is_worktree=checkout != self._main)
        for path in session.edited_paths:
            checkout = next((checkout for checkout in self._checkouts if is_inside(path, checkout)), "")
            if checkout:
                return WorkspaceMatch(1.0, f"changed files in {checkout}", is_worktree=checkout != self._main)
        for path in session.edited_paths:
            roots = (implied_root(path, tracked) for tracked in self._tracked.get(base_name(path), ()))
            root = next(filter(None, roots), None)
            if root is not None and any(is_inside(folder, root) for folder in session.folders):
                return WorkspaceMatch(0.8, f"worked in {root}, which has the same files")
        named = next((folder for folder in sorted(session.folders) if base_name(folder) in self._names), None)
        return WorkspaceMatch(0.5, f"worked in {named}") if named is not None else None


def _main_checkout(repository: Repository) -> str:
    main = repository.git_folder.parent if repository.git_folder.name == ".git" else repository.folder
    return str(main)


def changed_paths(graph: CommitGraph, sha: str) -> Iterable[str]:
    """Return the paths that a commit changes, also those before a rename."""
    return (path for file in graph.files(sha) for path in (file.path, file.old_path) if path is not None)
