"""Evidence that a session led to a commit, besides the lines that it wrote (`content`).

CallIndex      calls of `git commit` that made it, and commits that subagents report
FileIndex      files of the commit that the session changed
TrackingIndex  code of the session, as the tool's own tracking reports it
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from backscroll.commits.checkouts import CheckoutIndex, Relation, WorkspaceIndex, changed_paths
from backscroll.commits.commit_graph import CommitGraph
from backscroll.commits.content import SLACK_MS
from backscroll.commits.paths import base_name, implied_root, normalize
from backscroll.commits.scan import CommitCall, SessionWork
from backscroll.git.log import Commit
from backscroll.model.commit import TrackedCode, TrackedEdit
from backscroll.model.text import pluralize

_INFERRED_TIME_MS = 2 * 60_000  # an inferred time of a call or edit is earlier than that of its message
_PRINTED_HASH, _SUBJECT_IN_TIME, _CALL_IN_TIME, _SUBJECT, _SQUASHED = 1.0, 0.9, 0.6, 0.5, 0.4
_REPORTED_HASH = 0.8
_CALL_LATE = 0.3
_MAX_CALL_MS = 15 * 60 * 1000  # from a call to its commit: hooks and tests may run before
_MAX_LAST_CALL_MS = 3 * 60 * 1000  # of the last message of a session, whose end is not known
_PROMPT_MS = 60_000
# A summary of git proves that the call made the commit. The time excludes text that was printed again.
# An inferred time can be that of the whole session.
_MAX_CLOCK_ERROR_MS = 24 * 3600 * 1000
_MAX_SUBJECT_MS = 60 * 24 * 3600 * 1000
_MIN_SUBJECT_CHARS = 8
_PULL_REQUEST = re.compile(r"\s*\([#!]\d+\)\s*$")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HASH_KEY_CHARS = 7
_DAY_MS = 24 * 3600 * 1000
_MAX_TOUCHES = 300  # of files with the same name before one commit
_BEFORE_WINDOW = 0.5  # strength of an edit before the parent commit, within a day


class CallMatch(NamedTuple):
    """A call of `git commit` that made a commit."""

    strength: float
    detail: str
    needs_support: bool = False  # the call is in an unknown folder: other evidence must name the repository


class _SessionCall(NamedTuple):
    call: CommitCall
    session: int
    is_unknown: bool  # its folder cannot be compared with the repository


class CallIndex:
    """Calls of `git commit` by printed hash, subject and time."""

    def __init__(
        self,
        sessions: Sequence[SessionWork],
        commits: Mapping[str, Commit],
        shas: Iterable[str],
        relations: CheckoutIndex,
    ) -> None:
        self._ids = {session.id: number for number, session in enumerate(sessions)}
        self._by_hash: dict[str, list[tuple[str, CommitCall, int]]] = defaultdict(list)
        self._by_shown: dict[str, list[tuple[str, CommitCall, int]]] = defaultdict(list)
        self._by_report: dict[str, list[tuple[str, CommitCall, int]]] = defaultdict(list)
        self._by_subject: dict[str, list[_SessionCall]] = defaultdict(list)
        self._in_time: dict[str, list[tuple[float, _SessionCall]]] = defaultdict(list)  # without subject
        self._commits = commits
        self._shas = shas  # to match
        for number, session in enumerate(sessions):
            for call in session.calls:
                if call.is_report:
                    for named in call.hashes:
                        self._by_report[printed_key(named)].append((named, call, number))
                    continue
                for printed in call.hashes:
                    self._by_hash[printed_key(printed)].append((printed, call, number))
                for printed in call.shown:
                    self._by_shown[printed_key(printed)].append((printed, call, number))
                folder = normalize(call.folder)
                relation = relations.of_folder(folder) if folder else relations.of_session(session)
                if relation is not Relation.OTHER:
                    self._add(_SessionCall(call, number, relation is Relation.UNKNOWN))

    def _add(self, each: "_SessionCall") -> None:
        """Add a call that is known by its subject, or only by its time."""
        for subject in each.call.subjects:
            self._by_subject[_subject_key(subject)].append(each)
        if not each.call.subjects and not each.call.hashes:
            self._add_in_time(each)

    @cached_property
    def _times(self) -> dict[bool, list[tuple[int, str]]]:
        """Times and hashes of the commits to match and of those just before, by whether they are merges."""
        since, until = _period(self._commits[sha] for sha in self._shas)
        since -= _MAX_CALL_MS // 1000 + 2
        found: dict[bool, list[tuple[int, str]]] = {False: [], True: []}
        for sha, commit in self._commits.items():
            for at in {commit.authored_at, commit.committed_at}:  # an amend keeps the time of the author
                if since <= at <= until:
                    found[commit.is_merge].append((at * 1000, sha))
        return {is_merge: sorted(times) for is_merge, times in found.items()}

    @cached_property
    def _subject_counts(self) -> Counter[str]:
        """Number of commits by subject."""
        return Counter(_subject_key(commit.subject) for commit in self._commits.values())

    def _add_in_time(self, each: "_SessionCall") -> None:
        """Assign a call that is known only by its time to the first commit after it."""
        at = each.call.at
        if at is None:
            return
        times = self._times[each.call.is_merge]
        first = bisect_left(times, (at - 1000, ""))
        if first < len(times) and _is_in_time(each.call, times[first][0]):
            # A commit hook can take minutes. Without one, a commit takes seconds.
            is_prompt = times[first][0] <= at + _PROMPT_MS
            self._in_time[times[first][1]].append((_CALL_IN_TIME if is_prompt else _CALL_LATE, each))

    def match(self, commit: Commit) -> dict[int, CallMatch]:
        """Return the sessions that made a commit themselves."""
        found: dict[int, CallMatch] = {}

        def add(session: int, strength: float, detail: str, *, needs_support: bool = False) -> None:
            match = CallMatch(strength, detail, needs_support)
            if session not in found or _rank(found[session]) < _rank(match):
                found[session] = match

        key = printed_key(commit.sha)
        committed_at = commit.committed_at * 1000
        for printed, call, session in self._by_hash.get(key, ()):
            if commit.sha.startswith(printed) and _can_have_made(call, committed_at):
                add(session, _PRINTED_HASH, f"git printed {printed}")
        for printed, call, session in self._by_shown.get(key, ()):
            if commit.sha.startswith(printed) and _is_in_time(call, committed_at):
                add(session, _PRINTED_HASH, f"git printed {printed}")
        for id_ in named_sessions(commit.message):
            if id_ in self._ids:
                add(self._ids[id_], _PRINTED_HASH, "the message names the session")
        authored_at = commit.authored_at * 1000
        for named, call, session in self._by_report.get(key, ()):
            if commit.sha.startswith(named) and _was_running(call, committed_at):
                add(session, _REPORTED_HASH, f"a subagent reported {named}")
        subject_key = _subject_key(commit.subject)
        for call, session, is_unknown in self._by_subject.get(subject_key, ()):
            if _is_in_time(call, authored_at):
                # Message and time together are specific, also in a folder that was deleted.
                needs_support = is_unknown and len(subject_key) < _MIN_SUBJECT_CHARS
                detail = f"ran git commit with the message '{commit.subject}'"
                add(session, _SUBJECT_IN_TIME, detail, needs_support=needs_support)
            elif _is_before(call, committed_at) and len(subject_key) >= _MIN_SUBJECT_CHARS:
                others = max(1, self._subject_counts[subject_key])
                detail = f"ran git commit with the message '{commit.subject}' at another time"
                add(session, _SUBJECT / others, detail, needs_support=is_unknown)
        for line in commit.message.splitlines()[1:]:
            subject = _subject_key(line.strip().lstrip("*-").strip())
            if len(subject) >= _MIN_SUBJECT_CHARS:
                for call, session, is_unknown in self._by_subject.get(subject, ()):
                    if _is_before(call, committed_at):
                        detail = f"ran git commit with the message '{line.strip()}'"
                        add(session, _SQUASHED, detail, needs_support=is_unknown)
        for strength, (call, session, is_unknown) in self._in_time.get(commit.sha, ()):
            detail = f"ran git {'merge' if call.is_merge else 'commit'} at the time of the commit"
            add(session, strength, detail, needs_support=is_unknown)
        if commit.is_merge:  # other merges of the branch have the same message
            return {session: match for session, match in found.items() if match.strength > _SUBJECT}
        return found


def _rank(match: CallMatch) -> tuple[bool, float]:
    return not match.needs_support, match.strength


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


def _can_have_made(call: CommitCall, committed_at: int) -> bool:
    """Return whether a commit that git printed as created is not much older than the call."""
    return call.at is None or committed_at >= call.at - _MAX_CLOCK_ERROR_MS


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
