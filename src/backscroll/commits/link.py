"""Find the sessions of commits: collect the evidence, weigh it, and store the links.

The weights of all kinds add up to 1. A commit call that printed the hash is the strongest evidence. Content
follows: it finds the session also after a squash, and when the user commits. Files, time, workspace and
branch decide between sessions, and are too weak for a claim of their own.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import exp, sqrt
from typing import get_args

import msgspec
from msgspec import Struct

from backscroll.archive.archive import Archive
from backscroll.commits.checkouts import CheckoutIndex, WorkspaceIndex
from backscroll.commits.commit_graph import CommitGraph, read_graph
from backscroll.commits.content import SLACK_MS, ContentMatch, LineIndex, select_fragments
from backscroll.commits.evidence import (
    CallIndex,
    CallMatch,
    FileIndex,
    FileMatch,
    TrackingIndex,
    TrackingMatch,
    call_period,
    file_period,
    named_sessions,
    printed_key,
)
from backscroll.commits.scan import SessionWork, load_sessions, scan_times, update_scans
from backscroll.git.log import Commit
from backscroll.git.repository import Repository
from backscroll.model.commit import Evidence, EvidenceKind, LinkedSession, TrackedCode
from backscroll.model.sync import Progress
from backscroll.model.text import pluralize

_WEIGHTS = {"commit": 0.44, "content": 0.30, "files": 0.10, "time": 0.07, "workspace": 0.06, "branch": 0.03}
TRACKING_WEIGHT = 0.10  # of evidence that the tool collects itself, in addition to the others
MIN_SCORE = 0.2
MIN_CONTENT = 0.25  # of a claim without a commit call
MIN_FILES = 0.5  # of a claim without comparable content
_SOME_CONTENT, _SOME_FILES = 0.1, 0.25  # of a claim with little content
_RECENT = 0.6  # time strength of a session that was active 20 minutes before the commit
_CERTAIN_LINES = 8.0  # this many rare lines are strong evidence, however large the commit is
_CHANCE_LINES = 0.8  # one short or common line may match by chance
_MAX_UNCOMPARABLE_LINES = 1.0
_HALF_LIFE_SECONDS = 30 * 60
_BEFORE_WINDOW = 0.3  # activity that ended before the parent commit
_MAX_SESSIONS = 20  # per commit
_MAX_NAMED_FILES = 3
_MIN_UNRELATED_LINES = 3.0  # by weight, of a session without any other relation to the repository
_BATCH_COMMITS = 500  # commits per transaction
_SLACK_SECONDS = 120
_MAX_NEW_COMMITS = 20  # for more, all sessions are loaded
_LINK_VERSION = 2  # raise it if the rules change: stored links of other versions are not used
_KINDS: tuple[EvidenceKind, ...] = get_args(EvidenceKind)
_encoder = msgspec.msgpack.Encoder()


class _StoredLinks(msgspec.Struct, array_like=True):
    version: int
    sessions: tuple[LinkedSession, ...]


_decoder = msgspec.msgpack.Decoder(_StoredLinks)


def link_commits(
    archive: Archive,
    repository: Repository,
    commits: Sequence[Commit],
    shas: Sequence[str],
    *,
    progress: Progress | None = None,
) -> dict[str, tuple[LinkedSession, ...]]:
    """Return the sessions of the commits in ``shas``, best first. ``commits`` are all of the repository.

    Results are stored and used again until a session changes that is older than the commit.
    """
    update_scans(archive, progress)
    key = str(repository.git_folder)
    found = _stored_links(archive, key, shas)
    missing = [sha for sha in shas if sha not in found]
    if not missing:
        return found
    first_edit = archive.edit_scans.first_edit_at()
    if first_edit is None:
        return found | dict.fromkeys(missing, ())
    graph = read_graph(
        archive, repository, commits, since=first_edit // 1000 - _SLACK_SECONDS, progress=progress
    )
    reported = archive.hooks.commits.sessions(key)
    sessions = _load_sessions(archive, graph, missing, reported)
    linker = _Linker(graph, missing, sessions, CheckoutIndex(archive, repository), reported)
    batch: list[tuple[str, int, bytes]] = []
    for sha in missing:
        commit = graph.commits[sha]
        found[sha] = linker.sessions(commit)
        stored = _encoder.encode(_StoredLinks(_LINK_VERSION, found[sha]))
        batch.append((sha, commit.committed_at * 1000, stored))
    for start in range(0, len(batch), _BATCH_COMMITS):
        archive.commit_cache.put_links(key, batch[start : start + _BATCH_COMMITS])
    return found


def _stored_links(archive: Archive, key: str, shas: Sequence[str]) -> dict[str, tuple[LinkedSession, ...]]:
    """Return the stored links of commits, without those of other versions."""
    stored = archive.commit_cache.links(key)
    found: dict[str, tuple[LinkedSession, ...]] = {}
    for sha in shas:
        if sha in stored:
            with suppress(msgspec.ValidationError):  # of a version before 2
                links = _decoder.decode(stored[sha])
                if links.version == _LINK_VERSION:
                    found[sha] = links.sessions
    return found


def _load_sessions(
    archive: Archive, graph: CommitGraph, shas: Sequence[str], reported: Mapping[str, str]
) -> list[SessionWork]:
    """Return the sessions that can have led to one of the commits, with more of them for common lines."""
    if len(shas) > _MAX_NEW_COMMITS:
        return load_sessions(archive)
    commits = [graph.commits[sha] for sha in shas]
    since, until = file_period(graph, shas)
    first_call, last_call = call_period(commits)
    printed = [printed_key(sha).encode() for sha in shas]

    def is_needed(scan: bytes) -> bool:
        start, end, has_calls = scan_times(scan)
        if (start <= until and since <= end) or any(key in scan for key in printed):
            return True
        return has_calls and start <= last_call and first_call <= end

    wanted = {line for sha in shas for line in graph.lines(sha)}
    named = {id_ for commit in commits for id_ in named_sessions(commit.message)}
    named |= {reported[sha] for sha in shas if sha in reported}
    return load_sessions(archive, select_fragments(archive, wanted, is_needed), named)


def add_tracking(
    archive: Archive,
    repository: Repository,
    commits: Sequence[Commit],
    links: dict[str, tuple[LinkedSession, ...]],
    tracked: TrackedCode,
) -> dict[str, tuple[LinkedSession, ...]]:
    """Return the links with the evidence that a tool tracks itself. It is read each time, not stored."""
    index = TrackingIndex(tracked)
    scored = [commit for commit in commits if commit.sha in links and index.contains(commit.sha)]
    if not scored:
        return links
    graph = read_graph(archive, repository, scored, since=0, parents=commits)
    found = dict(links)
    for commit in scored:
        matches = index.match(commit, graph)
        claims = [_with_tracking(claim, matches.pop(claim.session_id, None)) for claim in found[commit.sha]]
        for session_id, match in matches.items():
            summaries = [each for each in archive.sessions.find(session_id) if each.id == session_id]
            if summaries and match.strength >= MIN_FILES:
                claims.append(_tracked_claim(summaries[0].ref, session_id, commit, match))
        claims.sort(key=lambda claim: (-claim.score, claim.session_ref))
        found[commit.sha] = tuple(claims)
    return found


def _with_tracking(claim: LinkedSession, match: TrackingMatch | None) -> LinkedSession:
    if match is None:
        return claim
    evidence = Evidence("tracking", round(TRACKING_WEIGHT * match.strength, 3), match.detail)
    score = round(min(1.0, claim.score + evidence.weight), 3)
    return LinkedSession(claim.session_ref, claim.session_id, score, (*claim.evidence, evidence))


def _tracked_claim(ref: str, session_id: str, commit: Commit, match: TrackingMatch) -> LinkedSession:
    """Return a session that is known only from the tracking: its edits are lost or not readable."""
    idle = max(0.0, commit.authored_at - match.last_at / 1000)
    parts = _Parts(files=match.strength, time=_time_strength(idle, is_in_window=True)).weights()
    evidence = (
        Evidence("files", round(parts["files"], 3), "files that the tool tracks"),
        Evidence("time", round(parts["time"], 3), _idle_text(idle)),
    )
    claim = LinkedSession(ref, session_id, round(sum(each.weight for each in evidence), 3), evidence)
    return _with_tracking(claim, match)


class _Linker:
    """Indexes of all evidence for some commits of a repository."""

    def __init__(
        self,
        graph: CommitGraph,
        shas: Sequence[str],
        sessions: Sequence[SessionWork],
        relations: CheckoutIndex,
        reported: Mapping[str, str],
    ) -> None:
        self._graph = graph
        self._sessions = sessions
        self._reported = reported  # commit: id of the session that made it, from the git hook
        self._numbers = {session.id: number for number, session in enumerate(sessions)}
        self._lines = LineIndex(graph, shas, sessions, relations)
        self._files = FileIndex(graph, shas, sessions)
        self._workspaces = WorkspaceIndex(graph, sessions, relations)
        self._calls = CallIndex(sessions, graph.commits, shas, relations)

    def sessions(self, commit: Commit) -> tuple[LinkedSession, ...]:
        """Return the sessions of a commit with their evidence, best first."""
        content = self._lines.match(commit)
        files = self._files.match(commit, self._workspaces)
        calls = dict(self._calls.match(commit))
        reporter = self._numbers.get(self._reported.get(commit.sha, ""))
        if reporter is not None:
            calls[reporter] = CallMatch(1.0, "made by the session, says the git hook")
        likely = {
            number
            for number, weight in content.matched.items()
            if _content_strength(weight, content.all_lines) >= MIN_CONTENT
        }
        claims = [
            claim
            for number in {*likely, *files, *calls}
            if (claim := self._claim(number, commit, content, files.get(number), calls.get(number)))
        ]
        claims.sort(key=lambda claim: (-claim.score, claim.session_ref))
        return tuple(claims[:_MAX_SESSIONS])

    def _claim(
        self,
        number: int,
        commit: Commit,
        content: ContentMatch,
        files: FileMatch | None,
        call: CallMatch | None,
    ) -> LinkedSession | None:
        """Return a session with its evidence; None if the evidence is too weak."""
        session = self._sessions[number]
        parts = _Parts()
        details: dict[str, str] = {}
        workspace = self._workspaces.match(number)
        if number in content.matched:
            parts.content = _content_strength(content.matched[number], content.all_lines)
            details["content"] = (
                f"{content.matched_counts[number]} of {pluralize(content.line_count, 'added line')}"
            )
        if files is not None:
            paths = [file.path for file in self._graph.files(commit.sha)]
            parts.files = min(1.0, sum(files.strengths.values()) / len(paths))
            parts.has_unknown_edits = bool(files.unknown_edits)
            parts.pending_files = len(files.pending_edits) / len(paths)
            named = ", ".join([*files.strengths][:_MAX_NAMED_FILES])
            more = ", …" if len(files.strengths) > _MAX_NAMED_FILES else ""
            details["files"] = f"{len(files.strengths)} of {pluralize(len(paths), 'file')}: {named}{more}"
        idle = _idle_time(session, commit, self._graph.window_start(commit))
        if idle is not None:
            seconds, parts.time = idle
            details["time"] = _idle_text(seconds)
        if workspace is not None:
            parts.workspace = workspace.strength
            details["workspace"] = workspace.detail
        branches = sorted(session.branches & self._graph.branches(commit))
        if branches and workspace is not None:  # most repositories have a branch with the same name
            parts.branch = 1.0
            details["branch"] = f"on branch {', '.join(branches)}"
        if call is not None and (not call.needs_support or workspace is not None or parts.has_content):
            parts.commit = call.strength
            details["commit"] = call.detail
        is_related = workspace is not None or parts.commit > 0 or parts.has_recent_files
        if not is_related and content.matched.get(number, 0.0) < _MIN_UNRELATED_LINES:
            return None  # two projects have equal lines by chance
        if not parts.is_claim(content.all_lines):
            return None
        is_worktree = workspace is not None and workspace.is_worktree
        weights = parts.weights()
        evidence = tuple(
            Evidence(
                "worktree" if kind == "workspace" and is_worktree else kind,
                round(weights[kind], 3),
                details[kind],
            )
            for kind in _KINDS
            if kind in details and weights.get(kind, 0) >= 0.0005
        )
        return LinkedSession(session.ref, session.id, round(sum(e.weight for e in evidence), 3), evidence)


def _idle_text(seconds: float) -> str:
    if seconds < 60:
        return "active at the time of the commit"
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    span = f"{minutes} min" if minutes < 120 else f"{hours} h" if hours < 48 else f"{hours // 24} days"
    return f"active until {span} before the commit"


class _Parts(Struct):
    """Strength of each kind of evidence, from 0 to 1."""

    commit: float = 0.0
    content: float = 0.0
    files: float = 0.0
    time: float = 0.0
    workspace: float = 0.0
    branch: float = 0.0
    has_unknown_edits: bool = False  # files were changed by commands whose effect is not known
    pending_files: float = 0.0  # share of the files that were edited in a checkout since the parent commit

    def weights(self) -> dict[str, float]:
        """Return the weight of each kind."""
        return {kind: weight * getattr(self, kind) for kind, weight in _WEIGHTS.items()}

    @property
    def has_content(self) -> bool:
        """Return whether some lines or files of the commit are those of the session."""
        return self.content >= _SOME_CONTENT or self.files >= _SOME_FILES

    @property
    def has_recent_files(self) -> bool:
        """Return whether the session changed files of the commit just before it."""
        return self.files >= _SOME_FILES and self.time >= _RECENT

    @property
    def score(self) -> float:
        return sum(self.weights().values())

    def is_claim(self, comparable_lines: float) -> bool:
        """Return whether the evidence is enough. ``comparable_lines`` is the weight of all added lines."""
        if self.score < MIN_SCORE:
            return False
        if self.commit or self.content >= MIN_CONTENT:
            return True
        if self.time >= _RECENT and (
            self.pending_files >= MIN_FILES or (self.content >= _SOME_CONTENT and self.files >= _SOME_FILES)
        ):
            return True  # the commit contains the edited files, but the lines were changed again
        # Nothing to compare: a deletion, a rename, a binary file, or a change by a command.
        is_uncomparable = comparable_lines < _MAX_UNCOMPARABLE_LINES or self.has_unknown_edits
        return is_uncomparable and self.files >= MIN_FILES


def _content_strength(matched_lines: float, all_lines: float) -> float:
    """Return the strength of matching lines, given by weight: a large share of the commit, or many lines."""
    if not matched_lines:
        return 0.0
    share = sqrt(min(1.0, matched_lines / all_lines)) * (1 - exp(-matched_lines / _CHANCE_LINES))
    return max(share, 1 - exp(-matched_lines / _CERTAIN_LINES))


def _time_strength(idle_seconds: float, *, is_in_window: bool) -> float:
    """Return the strength of activity that ended so long before the commit."""
    strength: float = 0.5 ** (idle_seconds / _HALF_LIFE_SECONDS)
    return strength if is_in_window else strength * _BEFORE_WINDOW


def _idle_time(session: SessionWork, commit: Commit, window_start: int) -> tuple[float, float] | None:
    """Return the seconds between the last activity and a commit, and the strength. None if it came later."""
    until = commit.authored_at * 1000 + SLACK_MS
    position = bisect_right(session.activity, (until, 1 << 60)) - 1
    if position < 0:
        return None
    last = min(until, max(end for _, end in session.activity[max(0, position - 20) : position + 1]))
    idle = max(0.0, commit.authored_at - last / 1000)
    return idle, _time_strength(idle, is_in_window=last >= window_start * 1000)
