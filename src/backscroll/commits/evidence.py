"""Evidence besides content: files, time, workspace, branch and commit calls."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from backscroll.commits.commit_graph import CommitGraph
from backscroll.commits.content import SLACK_MS
from backscroll.commits.paths import base_name, implied_root, is_inside, normalize, repository_names
from backscroll.commits.scan import CommitCall
from backscroll.commits.score import time_strength
from backscroll.commits.sessions import SessionWork
from backscroll.git import Commit, Repository
from backscroll.model.code.commit import TrackedCode, TrackedEdit
from backscroll.model.text import pluralize

__all__ = [
    "CallIndex",
    "CallMatch",
    "FileIndex",
    "FileMatch",
    "TrackingIndex",
    "TrackingMatch",
    "WorkspaceIndex",
    "WorkspaceMatch",
    "call_period",
    "file_period",
    "idle_time",
    "named_sessions",
    "printed_key",
]

_DAY_MS = 24 * 3600 * 1000
_INFERRED_TIME_MS = 2 * 60_000  # an inferred time of an edit is earlier than that of its message
_MAX_TOUCHES = 300  # of files with the same name before one commit
_BEFORE_WINDOW = 0.5  # strength of an edit before the parent commit, within a day
_PRINTED_HASH, _SUBJECT_IN_TIME, _CALL_IN_TIME, _SUBJECT, _SQUASHED = 1.0, 0.9, 0.6, 0.5, 0.4
_REPORTED_HASH = 0.8
_CALL_LATE = 0.3
_MAX_CALL_MS = 15 * 60 * 1000  # from a call to its commit: hooks and tests may run before
_MAX_LAST_CALL_MS = 3 * 60 * 1000  # of the last message of a session, whose end is not known
_PROMPT_MS = 60_000
_MAX_SUBJECT_MS = 60 * _DAY_MS
_MIN_SUBJECT_CHARS = 8
_PULL_REQUEST = re.compile(r"\s*\([#!]\d+\)\s*$")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HASH_KEY_CHARS = 7


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
        names = {base_name(path) for sha in shas for path in _paths(graph, sha)}
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

    def match(self, commit: Commit, workspaces: "WorkspaceIndex") -> dict[int, FileMatch]:
        """Return the files of a commit that each session changed before it."""
        start = self._graph.window_start(commit) * 1000
        since, until = _file_period(self._graph, commit)
        found: dict[int, FileMatch] = {}
        for tracked in _paths(self._graph, commit.sha):
            touches = self._touches.get(base_name(tracked), [])
            first = bisect_left(touches, (since,))
            end = bisect_right(touches, (until, 1 << 60))
            for touch in touches[max(first, end - _MAX_TOUCHES) : end]:
                root = implied_root(touch.path, tracked)
                if root is None:
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


def _paths(graph: CommitGraph, sha: str) -> Iterable[str]:
    return (path for file in graph.files(sha) for path in (file.path, file.old_path) if path is not None)


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
            for path in _paths(self._graph, sha):
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


class CallMatch(NamedTuple):
    """A call of `git commit` that made a commit."""

    strength: float
    detail: str


class CallIndex:
    """Calls of `git commit` by printed hash, subject and time."""

    def __init__(
        self, sessions: Sequence[SessionWork], commits: Mapping[str, Commit], shas: Iterable[str]
    ) -> None:
        self._ids = {session.id: number for number, session in enumerate(sessions)}
        self._by_hash: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._by_report: dict[str, list[tuple[str, CommitCall, int]]] = defaultdict(list)
        self._by_subject: dict[str, list[tuple[CommitCall, int]]] = defaultdict(list)
        self._in_time: dict[str, dict[int, float]] = defaultdict(dict)  # of calls without subject and hash
        self._commits = commits
        self._shas = shas  # to match
        for number, session in enumerate(sessions):
            for call in session.calls:
                if call.is_report:
                    for named in call.hashes:
                        self._by_report[named[:_HASH_KEY_CHARS]].append((named, call, number))
                    continue
                for printed in call.hashes:
                    self._by_hash[printed_key(printed)].append((printed, number))
                for subject in call.subjects:
                    self._by_subject[_subject_key(subject)].append((call, number))
                if not call.subjects and not call.hashes:
                    self._add_in_time(call, number)

    @cached_property
    def _times(self) -> list[tuple[int, str]]:
        """Times and hashes of the commits to match and of those just before. Merges are omitted."""
        since, until = _period(self._commits[sha] for sha in self._shas)
        since -= _MAX_CALL_MS // 1000 + 2
        return sorted(
            (at * 1000, sha)
            for sha, commit in self._commits.items()
            for at in {commit.authored_at, commit.committed_at}  # an amend keeps the time of the author
            if since <= at <= until and not commit.is_merge
        )

    @cached_property
    def _subject_counts(self) -> Counter[str]:
        """Number of commits by subject."""
        return Counter(_subject_key(commit.subject) for commit in self._commits.values())

    def _add_in_time(self, call: CommitCall, session: int) -> None:
        """Assign a call that is known only by its time to the first commit after it."""
        if call.at is None:
            return
        times = self._times
        first = bisect_left(times, (call.at - 1000, ""))
        if first < len(times) and _is_in_time(call, times[first][0]):
            # A commit hook can take minutes. Without one, a commit takes seconds.
            is_prompt = times[first][0] <= call.at + _PROMPT_MS
            strength = _CALL_IN_TIME if is_prompt else _CALL_LATE
            found = self._in_time[times[first][1]]
            found[session] = max(strength, found.get(session, 0.0))

    def match(self, commit: Commit) -> dict[int, CallMatch]:
        """Return the sessions that made a commit themselves."""
        found: dict[int, CallMatch] = {}

        def add(session: int, strength: float, detail: str) -> None:
            if session not in found or found[session].strength < strength:
                found[session] = CallMatch(strength, detail)

        for printed, session in self._by_hash.get(printed_key(commit.sha), ()):
            if commit.sha.startswith(printed):
                add(session, _PRINTED_HASH, f"git printed {printed}")
        for id_ in named_sessions(commit.message):
            if id_ in self._ids:
                add(self._ids[id_], _PRINTED_HASH, "the message names the session")
        authored_at, committed_at = commit.authored_at * 1000, commit.committed_at * 1000
        for named, call, session in self._by_report.get(commit.sha[:_HASH_KEY_CHARS], ()):
            if commit.sha.startswith(named) and _was_running(call, committed_at):
                add(session, _REPORTED_HASH, f"a subagent reported {named}")
        key = _subject_key(commit.subject)
        for call, session in self._by_subject.get(key, ()):
            if _is_in_time(call, authored_at):
                add(session, _SUBJECT_IN_TIME, f"ran git commit with the message '{commit.subject}'")
            elif _is_before(call, committed_at) and len(key) >= _MIN_SUBJECT_CHARS:
                others = max(1, self._subject_counts[key])
                detail = f"ran git commit with the message '{commit.subject}' at another time"
                add(session, _SUBJECT / others, detail)
        for line in commit.message.splitlines()[1:]:
            subject = _subject_key(line.strip().lstrip("*-").strip())
            if len(subject) >= _MIN_SUBJECT_CHARS:
                for call, session in self._by_subject.get(subject, ()):
                    if _is_before(call, committed_at):
                        add(session, _SQUASHED, f"ran git commit with the message '{line.strip()}'")
        for session, strength in self._in_time.get(commit.sha, {}).items():
            add(session, strength, "ran git commit at the time of the commit")
        return found


def _period(commits: Iterable[Commit]) -> tuple[int, int]:
    """Return the first and last time of an author or commit, in seconds."""
    times = [at for commit in commits for at in (commit.authored_at, commit.committed_at)]
    return min(times, default=0), max(times, default=0)


def call_period(commits: Iterable[Commit]) -> tuple[int, int]:
    """Return the time in which a call of `git commit` can have made one of the commits, in milliseconds.

    A call whose printed hash is that of the commit can have any time.
    """
    since, until = _period(commits)
    return since * 1000 - _MAX_SUBJECT_MS - _INFERRED_TIME_MS, until * 1000 + _INFERRED_TIME_MS


def printed_key(sha: str) -> str:
    """Return the start of a hash that every printed one has."""
    return sha[:_HASH_KEY_CHARS]


def named_sessions(message: str) -> list[str]:
    """Return the ids in the message of a commit that can be those of sessions."""
    return _UUID.findall(message)


def _subject_key(subject: str) -> str:
    """Return a subject to compare, without the number of a pull request that a forge appends."""
    if subject.rstrip().endswith(")"):
        subject = _PULL_REQUEST.sub("", subject)
    return " ".join(subject.split()).casefold()


def _is_in_time(call: CommitCall, authored_at: int) -> bool:
    """Return whether a commit was made while the call was running. Commits have whole seconds."""
    if call.at is None:
        return False
    until = call.until if call.until is not None else call.at + _MAX_LAST_CALL_MS
    return call.at - 1000 <= authored_at <= min(until, call.at + _MAX_CALL_MS) + 1000


def _was_running(call: CommitCall, committed_at: int) -> bool:
    """Return whether a commit was made between the start of a subagent and its report."""
    return call.at is not None and call.at - 1000 <= committed_at <= (call.until or call.at) + 1000


def _is_before(call: CommitCall, committed_at: int) -> bool:
    return call.at is not None and committed_at - _MAX_SUBJECT_MS <= call.at <= committed_at + SLACK_MS


def idle_time(session: SessionWork, commit: Commit, window_start: int) -> tuple[float, float] | None:
    """Return the seconds between the last activity and a commit, and the strength. None if it came later."""
    until = commit.authored_at * 1000 + SLACK_MS
    position = bisect_right(session.activity, (until, 1 << 60)) - 1
    if position < 0:
        return None
    last = min(until, max(end for _, end in session.activity[max(0, position - 20) : position + 1]))
    idle = max(0.0, commit.authored_at - last / 1000)
    return idle, time_strength(idle, is_in_window=last >= window_start * 1000)
