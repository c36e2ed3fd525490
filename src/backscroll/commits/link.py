"""Find the sessions of commits: collect the evidence, weigh it, and store the links.

The weights of all kinds add up to 1. A commit call that printed the hash is the strongest evidence. Content
follows: it finds the session also after a squash, and when the user commits. Files, time, workspace and
branch decide between sessions, and are too weak for a claim of their own.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import exp, sqrt
from typing import NamedTuple, get_args

import msgspec
from msgspec import Struct

from backscroll.archive.annotations import ManualLink
from backscroll.archive.archive import Archive
from backscroll.commits.checkouts import CheckoutIndex, Relation, WorkspaceIndex, changed_paths
from backscroll.commits.commit_graph import CommitGraph, read_graph
from backscroll.commits.content import SLACK_MS, ContentMatch, LineIndex, select_fragments
from backscroll.commits.paths import base_name, implied_root, normalize
from backscroll.commits.scan import CommitCall, SessionWork, load_sessions, scan_times, update_scans
from backscroll.git.diff import patch_id, read_sizes
from backscroll.git.log import Commit
from backscroll.git.repository import Repository
from backscroll.model.commit import Evidence, EvidenceKind, LinkedSession, TrackedCode, TrackedEdit
from backscroll.model.session import SessionSummary
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
_ACTIVITY_BEFORE_WINDOW = 0.3  # activity that ended before the parent commit
_MAX_SESSIONS = 20  # per commit
_MAX_NAMED_FILES = 3
_MIN_UNRELATED_LINES = 3.0  # by weight, of a session without any other relation to the repository
_BATCH_COMMITS = 500  # commits per transaction
_SLACK_SECONDS = 120
_MAX_NEW_COMMITS = 20  # for more, all sessions are loaded
_LINK_VERSION = 2  # raise it if the rules change: stored links of other versions are not used

# Commit calls and changed files: strengths, and times before the commit
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
_FILE_BEFORE_WINDOW = 0.5  # strength of an edit before the parent commit, within a day

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
    since, until = _file_period(graph, shas)
    first_call, last_call = _call_period(commits)
    printed = [_printed_key(sha).encode() for sha in shas]

    def is_needed(scan: bytes) -> bool:
        start, end, has_calls = scan_times(scan)
        if (start <= until and since <= end) or any(key in scan for key in printed):
            return True
        return has_calls and start <= last_call and first_call <= end

    wanted = {line for sha in shas for line in graph.lines(sha)}
    named = {id_ for commit in commits for id_ in _named_sessions(commit.message)}
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
    index = _TrackingIndex(tracked)
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


def _with_tracking(claim: LinkedSession, match: _TrackingMatch | None) -> LinkedSession:
    if match is None:
        return claim
    evidence = Evidence("tracking", round(TRACKING_WEIGHT * match.strength, 3), match.detail)
    score = round(min(1.0, claim.score + evidence.weight), 3)
    return LinkedSession(claim.session_ref, claim.session_id, score, (*claim.evidence, evidence))


def _tracked_claim(ref: str, session_id: str, commit: Commit, match: _TrackingMatch) -> LinkedSession:
    """Return a session that is known only from the tracking: its edits are lost or not readable."""
    idle = max(0.0, commit.authored_at - match.last_at / 1000)
    parts = _Parts(files=match.strength, time=_time_strength(idle, is_in_window=True)).weights()
    evidence = (
        Evidence("files", round(parts["files"], 3), "files that the tool tracks"),
        Evidence("time", round(parts["time"], 3), _idle_text(idle)),
    )
    claim = LinkedSession(ref, session_id, round(sum(each.weight for each in evidence), 3), evidence)
    return _with_tracking(claim, match)


def add_manual_links(
    archive: Archive,
    repository: Repository,
    commits: Sequence[Commit],
    links: dict[str, tuple[LinkedSession, ...]],
) -> dict[str, tuple[LinkedSession, ...]]:
    """Return the links with those that the user made, and without those that the user removed.

    A rebase and an amend keep the time of the author, and the patch id if the content is the same.
    """
    by_time: dict[int, list[ManualLink]] = defaultdict(list)
    selected = [commit for commit in commits if commit.sha in links]
    for link in archive.annotations.links({commit.authored_at for commit in selected}):
        by_time[link.authored_at].append(link)
    found = dict(links)
    for commit in selected:
        same_time = by_time.get(commit.authored_at, [])
        if not same_time:
            continue
        key = patch_key(repository, commit)
        decisions = {  # the last one of each session
            link.session: link.is_linked
            for link in same_time
            if link.sha == commit.sha or (key and link.patch_id == key)
        }
        others = {claim.session_id: claim for claim in found[commit.sha]}
        made: list[LinkedSession] = []
        for session, is_linked in decisions.items():
            claim = others.pop(session.id, None)
            summary = archive.sessions.by_key(session) if is_linked else None
            if summary is not None:
                made.append(manual_claim(summary, claim))
        found[commit.sha] = (*made, *others.values())
    return found


def patch_key(repository: Repository, commit: Commit) -> str:
    """Return the patch id of a commit, empty if it changes no file."""
    return patch_id(repository, commit.sha) if read_sizes(repository, commit.sha) else ""


def manual_claim(summary: SessionSummary, claim: LinkedSession | None = None) -> LinkedSession:
    """Return a link that the user made, with the evidence that was found."""
    others = claim.evidence if claim is not None else ()
    rest = round(max(0.0, 1 - sum(each.weight for each in others)), 3)
    return LinkedSession(summary.ref, summary.id, 1.0, (Evidence("manual", rest, "linked by hand"), *others))


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
        self._files = _FileIndex(graph, shas, sessions)
        self._workspaces = WorkspaceIndex(graph, sessions, relations)
        self._calls = _CallIndex(sessions, graph.commits, shas, relations)

    def sessions(self, commit: Commit) -> tuple[LinkedSession, ...]:
        """Return the sessions of a commit with their evidence, best first."""
        content = self._lines.match(commit)
        files = self._files.match(commit, self._workspaces)
        calls = dict(self._calls.match(commit))
        reporter = self._numbers.get(self._reported.get(commit.sha, ""))
        if reporter is not None:
            calls[reporter] = _CallMatch(1.0, "made by the session, says the git hook")
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
        files: _FileMatch | None,
        call: _CallMatch | None,
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
            details["time"] = _idle_text(seconds, is_inferred=session.has_inferred_times)
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


def _idle_text(seconds: float, *, is_inferred: bool = False) -> str:
    mark = "~" if is_inferred else ""
    if seconds < 60:
        return f"active at {'about ' if is_inferred else ''}the time of the commit"
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    span = f"{minutes} min" if minutes < 120 else f"{hours} h" if hours < 48 else f"{hours // 24} days"
    return f"active until {mark}{span} before the commit"


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
    return strength if is_in_window else strength * _ACTIVITY_BEFORE_WINDOW


def _idle_time(session: SessionWork, commit: Commit, window_start: int) -> tuple[float, float] | None:
    """Return the seconds between the last activity and a commit, and the strength. None if it came later."""
    until = commit.authored_at * 1000 + SLACK_MS
    position = bisect_right(session.activity, (until, 1 << 60)) - 1
    if position < 0:
        return None
    last = min(until, max(end for _, end in session.activity[max(0, position - 20) : position + 1]))
    idle = max(0.0, commit.authored_at - last / 1000)
    return idle, _time_strength(idle, is_in_window=last >= window_start * 1000)


# Evidence: commit calls


class _CallMatch(NamedTuple):
    """A call of `git commit` that made a commit."""

    strength: float
    detail: str
    needs_support: bool = False  # the call is in an unknown folder: other evidence must name the repository


class _SessionCall(NamedTuple):
    call: CommitCall
    session: int
    is_unknown: bool  # its folder cannot be compared with the repository


class _CallIndex:
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
                        self._by_report[_printed_key(named)].append((named, call, number))
                    continue
                for printed in call.hashes:
                    self._by_hash[_printed_key(printed)].append((printed, call, number))
                for printed in call.shown:
                    self._by_shown[_printed_key(printed)].append((printed, call, number))
                folder = normalize(call.folder)
                relation = relations.of_folder(folder) if folder else relations.of_session(session)
                if relation is not Relation.OTHER:
                    self._add(_SessionCall(call, number, relation is Relation.UNKNOWN))

    def _add(self, each: _SessionCall) -> None:
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

    def _add_in_time(self, each: _SessionCall) -> None:
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

    def match(self, commit: Commit) -> dict[int, _CallMatch]:
        """Return the sessions that made a commit themselves."""
        found: dict[int, _CallMatch] = {}

        def add(session: int, strength: float, detail: str, *, needs_support: bool = False) -> None:
            match = _CallMatch(strength, detail, needs_support)
            if session not in found or _rank(found[session]) < _rank(match):
                found[session] = match

        key = _printed_key(commit.sha)
        committed_at = commit.committed_at * 1000
        for printed, call, session in self._by_hash.get(key, ()):
            if commit.sha.startswith(printed) and _can_have_made(call, committed_at):
                add(session, _PRINTED_HASH, f"git printed {printed}")
        for printed, call, session in self._by_shown.get(key, ()):
            if commit.sha.startswith(printed) and _is_in_time(call, committed_at):
                add(session, _PRINTED_HASH, f"git printed {printed}")
        for id_ in _named_sessions(commit.message):
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


def _rank(match: _CallMatch) -> tuple[bool, float]:
    return not match.needs_support, match.strength


def _period(commits: Iterable[Commit]) -> tuple[int, int]:
    """Return the first and last time of an author or commit, in seconds."""
    times = [at for commit in commits for at in (commit.authored_at, commit.committed_at)]
    return min(times, default=0), max(times, default=0)


def _call_period(commits: Iterable[Commit]) -> tuple[int, int]:
    """Return the time in which a call of `git commit` can have made one of the commits, in milliseconds.

    A call whose printed hash is that of the commit can have any time.
    """
    since, until = _period(commits)
    return since * 1000 - _MAX_SUBJECT_MS - _INFERRED_TIME_MS, until * 1000 + _INFERRED_TIME_MS


def _printed_key(sha: str) -> str:
    """Return the start of a hash that every printed one has."""
    return sha[:_HASH_KEY_CHARS]


def _named_sessions(message: str) -> list[str]:
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


# Evidence: changed files


class _Touch(NamedTuple):
    at: int  # milliseconds
    session: int
    path: str
    is_shell: bool


class _FileMatch:
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


class _FileIndex:
    """Changes of files by name and time."""

    def __init__(self, graph: CommitGraph, shas: Sequence[str], sessions: Sequence[SessionWork]) -> None:
        self._graph = graph
        names = {base_name(path) for sha in shas for path in changed_paths(graph, sha)}
        since, until = _file_period(graph, shas)
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

    def match(self, commit: Commit, workspaces: WorkspaceIndex) -> dict[int, _FileMatch]:
        """Return the files of a commit that each session changed before it."""
        start = self._graph.window_start(commit) * 1000
        since, until = _commit_period(self._graph, commit)
        found: dict[int, _FileMatch] = {}
        for tracked in changed_paths(self._graph, commit.sha):
            touches = self._touches.get(base_name(tracked), [])
            first = bisect_left(touches, (since,))
            end = bisect_right(touches, (until, 1 << 60))
            for touch in touches[max(first, end - _MAX_TOUCHES) : end]:
                root = implied_root(touch.path, tracked)
                if root is None or workspaces.is_foreign(touch.session, touch.path):
                    continue
                strength = 1.0 if touch.at >= start else _FILE_BEFORE_WINDOW
                if "/" not in tracked and not workspaces.is_own_root(touch.session, root):
                    strength *= 0.2  # every project has a README
                match = found.setdefault(touch.session, _FileMatch())
                is_pending = touch.at >= start and workspaces.is_checkout(touch.session, root)
                match.add(tracked, strength, is_shell=touch.is_shell, is_pending=is_pending)
        return found


def _file_period(graph: CommitGraph, shas: Iterable[str]) -> tuple[int, int]:
    """Return the time in which activity of a session can be a change of files for one of the commits."""
    periods = [_commit_period(graph, graph.commits[sha]) for sha in shas]
    since = min((start for start, _ in periods), default=0) - _INFERRED_TIME_MS
    return since, max((end for _, end in periods), default=0) + _INFERRED_TIME_MS


def _commit_period(graph: CommitGraph, commit: Commit) -> tuple[int, int]:
    """Return the time in which changes of files are evidence, in milliseconds."""
    until = commit.authored_at * 1000 + SLACK_MS
    return min(graph.window_start(commit) * 1000, until - _DAY_MS), until


# Evidence: code that a tool tracks itself


class _TrackingMatch(NamedTuple):
    """Code of a session in a commit, as the tool's own tracking reports it."""

    strength: float  # share of the commit's files
    last_at: int  # milliseconds
    detail: str


class _TrackingIndex:
    """Code and commits that a tool tracks. It says which commits contain code of sessions."""

    def __init__(self, tracked: TrackedCode) -> None:
        self._commits = tracked.commits
        self._edits: dict[str, list[TrackedEdit]] = defaultdict(list)
        for edit in tracked.edits:
            self._edits[base_name(normalize(edit.path))].append(edit)

    def contains(self, sha: str) -> bool:
        """Return whether the tool found code of sessions in a commit."""
        return self._commits.get(sha, (0, 0))[0] > 0

    def match(self, commit: Commit, graph: CommitGraph) -> dict[str, _TrackingMatch]:
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
            session: _TrackingMatch(len(times) / len(files), max(times.values()), detail)
            for session, times in found.items()
        }
