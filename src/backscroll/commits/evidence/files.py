"""Files of a commit that sessions changed."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from backscroll.commits.commit_graph import CommitGraph
from backscroll.commits.evidence.content import SLACK_MS
from backscroll.commits.evidence.workspaces import WorkspaceIndex, changed_paths
from backscroll.commits.paths import base_name, implied_root, normalize
from backscroll.commits.sessions import SessionWork
from backscroll.git import Commit

__all__ = ["FileIndex", "FileMatch", "file_period"]

_DAY_MS = 24 * 3600 * 1000
_INFERRED_TIME_MS = 2 * 60_000  # an inferred time of an edit is earlier than that of its message
_MAX_TOUCHES = 300  # of files with the same name before one commit
_BEFORE_WINDOW = 0.5  # strength of an edit before the parent commit, within a day


class _Touch(NamedTuple):
    at: int  # milliseconds
    session: int
    path: str
    is_shell: bool


class FileMatch:
    """Files of a commit that a session changed."""

    def __init__(self) -> None:
        self.strengths: dict[str, float] = {}
        self.unknown_edits: set[str] = set()  # changed by a command
        self.pending_edits: set[str] = set()  # edited in a checkout of the repository since the parent commit

    def add(self, path: str, strength: float, *, is_shell: bool, is_pending: bool) -> None:
        self.strengths[path] = max(strength, self.strengths.get(path, 0.0))
        if is_shell:
            self.unknown_edits.add(path)
        elif is_pending:
            self.pending_edits.add(path)


class FileIndex:
    """Changes of files by name and time."""

    def __init__(self, graph: CommitGraph, shas: Sequence[str], sessions: Sequence[SessionWork]) -> None:
        self._graph = graph
        names = {base_name(path) for sha in shas for path in changed_paths(graph, sha)}
        since, until = file_period(graph, shas)
        self._touches: dict[str, list[_Touch]] = defaultdict(list)
        for number, session in enumerate(sessions):
            for fragment in session.fragments:
                if not fragment.is_active(since, until):
                    continue
                for edit in fragment.edits:
                    name = edit.path[edit.path.rfind("/") + 1 :]
                    if name in names or "\\" in name:
                        path = normalize(edit.path)
                        self._touches[base_name(path)].append(
                            _Touch(edit.at or 0, number, path, edit.is_shell)
                        )
        for touches in self._touches.values():
            touches.sort()

    def match(self, commit: Commit, workspaces: WorkspaceIndex) -> dict[int, FileMatch]:
        """Return the files of a commit that each session changed before it."""
        start = self._graph.window_start(commit) * 1000
        since, until = _file_period(self._graph, commit)
        found: dict[int, FileMatch] = {}
        for tracked in changed_paths(self._graph, commit.sha):
            touches = self._touches.get(base_name(tracked), [])
            first = bisect_left(touches, (since,))
            end = bisect_right(touches, (until, 1 << 60))
            for touch in touches[max(first, end - _MAX_TOUCHES) : end]:
                root = implied_root(touch.path, tracked)
                if root is None or workspaces.is_foreign(touch.session, touch.path):
                    continue
                strength = 1.0 if touch.at >= start else _BEFORE_WINDOW
                if "/" not in tracked and not workspaces.is_own_root(touch.session, root):
                    strength *= 0.2  # every project has a README
                match = found.setdefault(touch.session, FileMatch())
                is_pending = touch.at >= start and workspaces.is_checkout(touch.session, root)
                match.add(tracked, strength, is_shell=touch.is_shell, is_pending=is_pending)
        return found


def file_period(graph: CommitGraph, shas: Iterable[str]) -> tuple[int, int]:
    """Return the time in which activity of a session can be a change of files for one of the commits."""
    periods = [_file_period(graph, graph.commits[sha]) for sha in shas]
    since = min((start for start, _ in periods), default=0) - _INFERRED_TIME_MS
    return since, max((end for _, end in periods), default=0) + _INFERRED_TIME_MS


def _file_period(graph: CommitGraph, commit: Commit) -> tuple[int, int]:
    """Return the time in which changes of files are evidence, in milliseconds."""
    until = commit.authored_at * 1000 + SLACK_MS
    return min(graph.window_start(commit) * 1000, until - _DAY_MS), until
