"""Code of sessions in commits, as the tool's own tracking reports it."""

from collections import defaultdict
from typing import NamedTuple

from backscroll.commits.commit_graph import CommitGraph
from backscroll.commits.evidence.content import SLACK_MS
from backscroll.commits.paths import base_name, implied_root, normalize
from backscroll.git import Commit
from backscroll.model.code.commit import TrackedCode, TrackedEdit
from backscroll.model.text import pluralize

__all__ = ["TrackingIndex", "TrackingMatch"]


class TrackingMatch(NamedTuple):
    """Code of a session in a commit, as the tool's own tracking reports it."""

    strength: float  # share of the commit's files
    last_at: int  # milliseconds
    detail: str


class TrackingIndex:
    """Code and commits that a tool tracks. It says which commits contain code of sessions."""

    def __init__(self, tracked: TrackedCode) -> None:
        self._commits = tracked.commits
        self._edits: dict[str, list[TrackedEdit]] = defaultdict(list)
        for edit in tracked.edits:
            self._edits[base_name(normalize(edit.path))].append(edit)

    def contains(self, sha: str) -> bool:
        """Return whether the tool found code of sessions in a commit."""
        return self._commits.get(sha, (0, 0))[0] > 0

    def match(self, commit: Commit, graph: CommitGraph) -> dict[str, TrackingMatch]:
        """Return the sessions with code in the commit's files since the parent commit, by id."""
        by_sessions, total = self._commits[commit.sha]
        start, until = graph.window_start(commit) * 1000, commit.authored_at * 1000 + SLACK_MS
        files = graph.files(commit.sha)
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for file in files:
            for edit in self._edits.get(base_name(file.path), ()):
                path = normalize(edit.path)
                is_same = "/" not in path or implied_root(path, file.path) is not None
                if is_same and start <= edit.at <= until:
                    times = found[edit.session_id]
                    times[file.path] = max(edit.at, times.get(file.path, 0))
        detail = f"the tool counts {by_sessions} of {pluralize(total, 'added line')} as written by sessions"
        return {
            session: TrackingMatch(len(times) / len(files), max(times.values()), detail)
            for session, times in found.items()
        }
