"""Lines of sessions that were committed, and those that still exist.

The first-parent history is replayed: each file is a list with the writer of each line.
"""

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import Struct

from backscroll.archive.archive import Archive
from backscroll.commits.checkouts import CheckoutIndex, Relation
from backscroll.commits.commit_graph import window_start
from backscroll.commits.content import (
    MAX_WRITERS,
    SLACK_MS,
    AddedLine,
    EditMatcher,
    PathIndex,
    Writer,
    find_writers,
)
from backscroll.commits.lines import code_lines, hash_each
from backscroll.commits.paths import base_name, implied_root, normalize, repository_names
from backscroll.commits.scan import FragmentWork, ScannedEdit, SessionWork, load_sessions, update_scans
from backscroll.git.diff import CommitHunks, read_hunks
from backscroll.git.repository import Repository
from backscroll.model.sync import Progress

_Line = tuple[Writer, int]  # the edit that wrote a line, and its hash


class _Hunk(Struct, frozen=True, gc=False):
    """Lines that a commit replaces, by hash."""

    start: int  # in the new file, from 0
    removed_count: int
    added: "array[int]"


class _Pending(NamedTuple):
    """A new line whose edit is to be found."""

    lines: list[_Line | None]
    place: int
    line: AddedLine


class _File(Struct, frozen=True):
    path: str
    old_path: str | None
    is_deleted: bool
    hunks: tuple[_Hunk, ...]


class _Commit(Struct, frozen=True):
    start: int  # milliseconds: since when work can belong to the commit; 0 for a merge
    authored_at: int
    until: int  # time of the author or of the commit, the later one
    files: tuple[_File, ...]


class EditSurvival(Struct):
    """Lines of one call."""

    session: int  # number in the archive
    session_ref: str
    fragment_id: int
    position: int
    at: int | None  # milliseconds since 1970
    written: int = 0
    committed: int = 0
    alive: int = 0


def find_survival(
    archive: Archive,
    repository: Repository,
    *,
    ref: str,
    since: datetime | None = None,
    fragment_ids: Iterable[int] | None = None,
    progress: Progress | None = None,
) -> list[EditSurvival]:
    """Return the calls that wrote lines into the repository, with what became committed and is alive.

    Only edits on or after ``since`` count, and only those in the given fragments.
    """
    replay = replay_commits(archive, repository, ref=ref, fragment_ids=fragment_ids, progress=progress)
    files = _RepositoryFiles(replay.checkouts, repository, replay.commits)
    found = _written(files, replay.sessions)
    _count(found, replay.sessions, replay.committed.elements(), "committed")
    _count(found, replay.sessions, replay.alive(), "alive")
    start = since.timestamp() * 1000 if since is not None else 0
    return [each for each in found.values() if each.written and (not start or (each.at or 0) >= start)]


def replay_commits(
    archive: Archive,
    repository: Repository,
    *,
    ref: str,
    fragment_ids: Iterable[int] | None = None,
    progress: Progress | None = None,
) -> "Replay":
    """Return the files of a commit with the edit behind each line. See `find_survival`."""
    update_scans(archive, progress)
    selected = set(fragment_ids) if fragment_ids is not None else None
    sessions = [_selected(session, selected) for session in load_sessions(archive)]
    is_empty = ref == "HEAD" and not repository.has_commits
    commits: list[_Commit] = []
    for hunks in () if is_empty else read_hunks(repository, ref):
        commits.append(_hashed(hunks, commits[-1].authored_at // 1000 if commits else None))
    replay = Replay(CheckoutIndex(archive, repository), repository, commits, sessions)
    for done, commit in enumerate(commits, start=1):
        replay.apply(commit)
        if progress is not None and not done % 500:
            progress(done, len(commits))
    return replay


def _hashed(commit: CommitHunks, parent_at: int | None) -> _Commit:
    files = tuple(
        _File(
            file.path,
            file.old_path,
            file.is_deleted,
            tuple(
                _Hunk(
                    hunk.new_start - 1 if hunk.added else hunk.new_start,
                    hunk.old_count,
                    hash_each(code_lines(file.path, hunk.added)),
                )
                for hunk in file.hunks
            ),
        )
        for file in commit.files
    )
    return _Commit(
        0 if commit.is_merge else window_start(commit.authored_at, parent_at) * 1000,
        commit.authored_at * 1000,
        max(commit.authored_at, commit.committed_at) * 1000 + SLACK_MS,
        files,
    )


def _selected(session: SessionWork, fragment_ids: set[int] | None) -> SessionWork:
    """Remove fragments that are not counted, and edits that a second fragment repeats."""
    seen: set[tuple[int | None, str, int]] = set()
    kept: list[FragmentWork] = []
    for fragment in session.fragments:
        if fragment_ids is not None and fragment.id not in fragment_ids:
            continue
        keys = {(edit.at, edit.path, edit.line_count) for edit in fragment.edits if edit.line_count}
        if keys and keys <= seen:
            continue
        seen |= keys
        kept.append(fragment)
    session.fragments = kept
    return session


def _written(
    files: "_RepositoryFiles", sessions: Sequence[SessionWork]
) -> dict[tuple[int, int], EditSurvival]:
    """Return the calls that wrote to files of the repository, by fragment and position."""
    found: dict[tuple[int, int], EditSurvival] = {}
    for session in sessions:
        for fragment in session.fragments:
            for edit in fragment.edits:
                if edit.line_count and not edit.is_script and files.contains(edit.path, session):
                    _entry(found, session, fragment, edit).written += edit.line_count
    return found


def _entry(
    found: dict[tuple[int, int], EditSurvival],
    session: SessionWork,
    fragment: FragmentWork,
    edit: ScannedEdit,
) -> EditSurvival:
    key = fragment.id, edit.position
    if key not in found:
        found[key] = EditSurvival(session.number, session.ref, fragment.id, edit.position, edit.at)
    return found[key]


def _count(
    found: dict[tuple[int, int], EditSurvival],
    sessions: Sequence[SessionWork],
    lines: Iterable[_Line],
    name: str,
) -> None:
    """Add the number of lines to their calls. A line of a script counts as written if it is committed."""
    for writer, _ in lines:
        key = writer.fragment_id, writer.position
        if key not in found:
            session = sessions[writer.session]
            found[key] = EditSurvival(session.number, session.ref, *key, writer.at or None)
        entry = found[key]
        setattr(entry, name, getattr(entry, name) + 1)
        entry.written = max(entry.written, getattr(entry, name))


class _RepositoryFiles:
    """Decides whether an edited file belongs to the repository."""

    def __init__(self, checkouts: CheckoutIndex, repository: Repository, commits: Iterable[_Commit]) -> None:
        self._checkouts = checkouts
        self._names = repository_names(repository)
        self._tracked: dict[str, set[str]] = defaultdict(set)
        for commit in commits:
            for file in commit.files:
                self._tracked[base_name(file.path)].add(file.path)
        self._is_tracked: dict[str, bool] = {}

    def contains(self, path: str, session: SessionWork) -> bool:
        """Return whether a file is in a checkout, or in an unknown folder with the repository's name."""
        if not path:
            return False
        path = normalize(path)
        relation = self._checkouts.of_edit(session, path)
        if relation is not Relation.UNKNOWN:
            return relation is Relation.SAME
        if path not in self._is_tracked:
            roots = (implied_root(path, tracked) for tracked in self._tracked.get(base_name(path), ()))
            self._is_tracked[path] = any(root and base_name(root) in self._names for root in roots)
        return self._is_tracked[path]


def _repeated_lines(sessions: Sequence[SessionWork]) -> dict[tuple[int, int, str, int], int]:
    """Return how often edits add the lines that they repeat, by fragment, position, path and hash."""
    found: dict[tuple[int, int, str, int], int] = {}
    for fragment in (fragment for session in sessions for fragment in session.fragments):
        lines = fragment.lines()
        start = 0
        for edit in fragment.edits:
            added = lines[start : start + edit.line_count]
            start += edit.line_count
            if len(set(added)) < len(added):
                path = normalize(edit.path)
                for hashed, count in Counter(added).items():
                    if count > 1:
                        found[fragment.id, edit.position, path, hashed] = count
    return found


class Replay:
    """Files of the repository, with the writer of each line."""

    def __init__(
        self,
        checkouts: CheckoutIndex,
        repository: Repository,
        commits: Sequence[_Commit],
        sessions: Sequence[SessionWork],
    ) -> None:
        self.checkouts = checkouts
        self.commits = commits
        self.sessions = sessions
        self.files: dict[str, list[_Line | None]] = {}
        self.committed: Counter[_Line] = Counter()
        self._by_name: dict[int, dict[str, list[Writer]]] = {}
        wanted: set[int] = set()
        names: set[str] = set()
        for commit in commits:
            for file in commit.files:
                names.add(base_name(file.path))
                for hunk in file.hunks:
                    wanted.update(hunk.added)
        self._writers = find_writers(wanted - {0}, sessions, names)
        self._repeated = _repeated_lines(sessions)
        self._matcher = EditMatcher(self._writers, PathIndex(checkouts, repository, sessions))

    def alive(self) -> Iterator[_Line]:
        """Yield the writers of all lines that exist."""
        return (line for lines in self.files.values() for line in lines if line is not None)

    def apply(self, commit: _Commit) -> None:
        """Replace the lines that a commit changes."""
        removed: dict[int, list[_Line]] = defaultdict(list)
        pending: list[_Pending] = []
        for file in commit.files:
            lines = self.files.setdefault(file.path, [])
            if file.old_path is not None:
                lines = self.files[file.path] = self.files.pop(file.old_path, [])
            self._replace(file, lines, removed, pending)
            if file.is_deleted:
                self.files.pop(file.path, None)
        candidates = [(each.line, self._candidates(each.line, removed, commit)) for each in pending]
        support = self._matcher.support(candidates)
        for each, (line, writers) in zip(pending, candidates, strict=True):
            hashed = line.hashed
            left = (writer for writer in writers if self._is_left(writer, hashed))
            writer = self._matcher.choose(line, left, support, commit.start)
            if writer is not None:
                each.lines[each.place] = writer, hashed
                self.committed[writer, hashed] += 1
            elif removed[hashed]:  # moved or reformatted by this commit
                each.lines[each.place] = removed[hashed].pop()

    def _replace(
        self,
        file: _File,
        lines: list[_Line | None],
        removed: dict[int, list[_Line]],
        pending: "list[_Pending]",
    ) -> None:
        """Replace the lines of one file. New lines are added to ``pending``, by their position."""
        for hunk in file.hunks:  # positions of the new file, so that earlier hunks are already applied
            end = hunk.start + hunk.removed_count
            if end > len(lines):
                lines.extend([None] * (end - len(lines)))
            for line in lines[hunk.start : end]:
                if line is not None:
                    removed[line[1]].append(line)
            lines[hunk.start : end] = [None] * len(hunk.added)
            pending += [
                _Pending(lines, hunk.start + offset, AddedLine(hashed, file.path, file.old_path))
                for offset, hashed in enumerate(hunk.added)
                if hashed in self._writers
            ]

    def _candidates(self, line: AddedLine, removed: dict[int, list[_Line]], commit: _Commit) -> list[Writer]:
        """Return the edits that wrote a line before the commit, and that no earlier commit contains.

        Of a common line, only the last ones that changed a file of the same name.
        """
        hashed = line.hashed
        writers = self._writers[hashed]
        if len(writers) > MAX_WRITERS:
            writers = self._common_writers(hashed).get(base_name(line.path), [])
            end = bisect_right(writers, (commit.until, 1 << 60))
            writers = writers[max(0, end - MAX_WRITERS) : end]
        left = [writer for writer in writers if writer.at <= commit.until and self._is_left(writer, hashed)]
        if removed.get(hashed):  # unless a session wrote it again
            return [
                writer
                for writer in left
                if writer.at >= commit.start and self._matcher.is_same_path(writer, line)
            ]
        return self._matcher.candidates(line, left, commit.start, commit.authored_at)

    def _is_left(self, writer: Writer, hashed: int) -> bool:
        """Return whether an edit added a line more often than commits contain it."""
        committed = self.committed.get((writer, hashed), 0)
        key = writer.fragment_id, writer.position, writer.path, hashed
        return not committed or committed < self._repeated.get(key, 1)

    def _common_writers(self, hashed: int) -> dict[str, list[Writer]]:
        """Return the edits that wrote a common line, by name of the file."""
        if hashed not in self._by_name:
            found = self._by_name[hashed] = defaultdict(list)
            for writer in self._writers[hashed]:
                found[base_name(writer.path)].append(writer)
        return self._by_name[hashed]
