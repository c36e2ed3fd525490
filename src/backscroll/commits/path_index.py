"""Compare the paths of edits with the files of the repository."""

from collections.abc import Sequence

from backscroll.commits.checkouts import CheckoutIndex, Relation
from backscroll.commits.evidence.content import Writer
from backscroll.commits.paths import base_name, implied_root, is_inside, normalize, repository_names
from backscroll.commits.sessions import SessionWork
from backscroll.git import Repository

__all__ = ["MIN_SUPPORT", "PathIndex"]

MIN_SUPPORT = 1.0  # weight of the lines from one session, in the same commit
_MIN_OTHER_PATH_SUPPORT = 2.0  # the same, if the session wrote them to another file
_MIN_UNKNOWN_SUPPORT, _MIN_UNKNOWN_OTHER_PATH_SUPPORT = 3.0, 4.0  # of a session in an unknown folder


class PathIndex:
    """Compares paths of edits with paths in the repository."""

    # The file itself; in another clone, or in a folder with the repository's name; in any folder; other
    # paths; in another repository.
    SAME_FILE, SAME_CLONE, SAME_PATH, SAME_NAME, OTHER_PATH, FOREIGN = 4, 3, 2, 1, 0, -1

    def __init__(
        self, relations: CheckoutIndex, repository: Repository, sessions: Sequence[SessionWork]
    ) -> None:
        self._relations = relations
        self._checkouts = [normalize(str(path)) for path in repository.checkouts]
        self._names = repository_names(repository)
        self._sessions = sessions
        self._ranks: dict[tuple[int, str, str], int] = {}

    def is_local(self, session: int) -> bool:
        """Return whether a session worked in a checkout of the repository."""
        folders = self._sessions[session].folders
        return any(is_inside(folder, checkout) for folder in folders for checkout in self._checkouts)

    def rank(self, session: int, edited: str, tracked: str) -> int:
        """Return how well an edited path matches a file of the repository, at most 4."""
        key = session, edited, tracked
        if key not in self._ranks:
            self._ranks[key] = self._rank(session, edited, tracked)
        return self._ranks[key]

    def best_sessions(self, writers: Sequence[Writer], tracked: str) -> set[int]:
        """Return the sessions whose path matches a file best. Their lines support each other."""
        ranks = [self.rank(writer.session, writer.path, tracked) for writer in writers]
        best = max(ranks, default=self.FOREIGN)
        if best == self.FOREIGN:
            return set()
        return {writer.session for writer, rank in zip(writers, ranks, strict=True) if rank == best}

    def min_support(self, session: int, rank: int) -> float:
        """Return the weight of the lines that a session must have in a commit, if the file is not the same.

        Two projects have equal lines by chance. More are needed if the session's folder is not known.
        """
        is_known = self._relations.of_session(self._sessions[session]) is Relation.SAME
        if rank == self.SAME_PATH:
            return MIN_SUPPORT if is_known else _MIN_UNKNOWN_SUPPORT
        return _MIN_OTHER_PATH_SUPPORT if is_known else _MIN_UNKNOWN_OTHER_PATH_SUPPORT

    def _rank(self, session: int, edited: str, tracked: str) -> int:
        relation = self._relations.of_edit(self._sessions[session], edited)
        if relation is Relation.OTHER:
            return self.FOREIGN
        if not edited:
            return self.SAME_NAME  # the path is not known
        folders = ["", *(f"{folder}/" for folder in self._sessions[session].folders)]
        files = {f"{checkout}/{tracked}" for checkout in self._checkouts}
        if any(f"{folder}{edited}" in files for folder in folders):
            return self.SAME_FILE
        root = implied_root(edited, tracked)
        is_in_clone = relation is Relation.SAME and (root or edited == tracked)
        if root is not None and (is_in_clone or base_name(root) in self._names):
            return self.SAME_CLONE
        if root is not None and "/" in tracked:  # every project has a README
            return self.SAME_PATH
        return self.SAME_NAME if base_name(edited) == base_name(tracked) else self.OTHER_PATH
