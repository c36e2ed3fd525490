"""Folders of sessions, compared with the checkouts of the repository."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from backscroll.commits.checkouts import CheckoutIndex, Relation
from backscroll.commits.commit_graph import CommitGraph
from backscroll.commits.paths import base_name, implied_root, is_inside, repository_names
from backscroll.commits.sessions import SessionWork
from backscroll.git import Repository

__all__ = ["WorkspaceIndex", "WorkspaceMatch", "changed_paths"]

_MIN_SAME_FILES = 2  # two projects often have one path in common


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
