"""Lines of sessions that were committed, and those that still exist.

The first-parent history is replayed: each file is a list with the writer of each line.
"""

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from math import log2

from msgspec import Struct

from backscroll.archive.archive import Archive
from backscroll.commits.checkouts import CheckoutIndex, Relation
from backscroll.commits.content import MAX_WRITERS, SLACK_MS, PathIndex, Writer, find_writers
from backscroll.commits.lines import code_lines, hash_each, line_weight
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


class _File(Struct, frozen=True):
    path: str
    old_path: str | None
    is_deleted: bool
    hunks: tuple[_Hunk, ...]


class _Commit(Struct, frozen=True):
    until: int  # milliseconds: time of the author or of the commit, the later one
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
    update_scans(archive, progress)
    selected = set(fragment_ids) if fragment_ids is not None else None
    sessions = [_selected(session, selected) for session in load_sessions(archive)]
    is_empty = ref == "HEAD" and not repository.has_commits
    commits = [] if is_empty else [_hashed(commit) for commit in read_hunks(repository, ref)]
    checkouts = CheckoutIndex(archive, repository)
    replay = _Replay(PathIndex(checkouts, repository, sessions), commits, sessions)
    for done, commit in enumerate(commits, start=1):
        replay.apply(commit)
        if progress is not None and not done % 500:
            progress(done, len(commits))
    found = _written(_RepositoryFiles(checkouts, repository, commits), sessions)
    _count(found, sessions, replay.committed.elements(), "committed")
    _count(found, sessions, replay.alive(), "alive")
    start = since.timestamp() * 1000 if since is not None else 0
    return [each for each in found.values() if each.written and (not start or (each.at or 0) >= start)]


def _hashed(commit: CommitHunks) -> _Commit:
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
    return _Commit(max(commit.authored_at, commit.committed_at) * 1000 + SLACK_MS, files)


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
                if edit.line_count and files.contains(edit.path, session):
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


class _Replay:
    """Files of the repository, with the writer of each line."""

    def __init__(self, paths: PathIndex, commits: Iterable[_Commit], sessions: Sequence[SessionWork]) -> None:
        self._paths = paths
        self._files: dict[str, list[_Line | None]] = {}
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

    def alive(self) -> Iterator[_Line]:
        """Yield the writers of all lines that exist."""
        return (line for lines in self._files.values() for line in lines if line is not None)

    def apply(self, commit: _Commit) -> None:
        """Replace the lines that a commit changes."""
        removed: dict[int, list[_Line]] = defaultdict(list)
        pending: list[tuple[list[_Line | None], int, str, int]] = []
        for file in commit.files:
            lines = self._files.setdefault(file.path, [])
            if file.old_path is not None:
                lines = self._files[file.path] = self._files.pop(file.old_path, [])
            self._replace(file, lines, removed, pending)
            if file.is_deleted:
                self._files.pop(file.path, None)
        candidates = [self._candidates(path, hashed, removed, commit) for _, _, path, hashed in pending]
        support: Counter[int] = Counter()
        for (_, _, path, hashed), writers in zip(pending, candidates, strict=True):
            authors = self._paths.best_sessions(writers, path)
            for session in authors:
                support[session] += round(100 * line_weight(hashed) / (1 + log2(len(authors))))
        for (lines, index, path, hashed), writers in zip(pending, candidates, strict=True):
            if removed[hashed]:  # moved or reformatted by this commit
                lines[index] = removed[hashed].pop()
                continue
            writer = self._choose((each for each in writers if self._is_left(each, hashed)), path, support)
            if writer is not None:
                lines[index] = writer, hashed
                self.committed[writer, hashed] += 1

    def _replace(
        self,
        file: _File,
        lines: list[_Line | None],
        removed: dict[int, list[_Line]],
        pending: list[tuple[list[_Line | None], int, str, int]],
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
                (lines, hunk.start + offset, file.path, hashed)
                for offset, hashed in enumerate(hunk.added)
                if hashed in self._writers
            ]

    def _candidates(
        self, path: str, hashed: int, removed: dict[int, list[_Line]], commit: _Commit
    ) -> list[Writer]:
        """Return the edits that wrote a line before the commit, and that no earlier commit contains.

        Of a common line, only the last ones that changed a file of the same name.
        """
        if removed.get(hashed):
            return []
        writers = self._writers[hashed]
        if len(writers) > MAX_WRITERS:
            writers = self._common_writers(hashed).get(base_name(path), [])
            end = bisect_right(writers, (commit.until, 1 << 60))
            writers = writers[max(0, end - MAX_WRITERS) : end]
        return [writer for writer in writers if writer.at <= commit.until and self._is_left(writer, hashed)]

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

    def _choose(self, writers: Iterable[Writer], path: str, support: Counter[int]) -> Writer | None:
        """Return the last edit of the best matching file."""
        best: tuple[int, int] | None = None
        found: Writer | None = None
        for writer in writers:
            rank = self._paths.rank(writer.session, writer.path, path)
            if rank == PathIndex.FOREIGN:
                continue
            if rank < PathIndex.SAME_CLONE:
                needed = self._paths.min_support(writer.session, rank)
                if support[writer.session] < 100 * needed:
                    continue
            if best is None or (rank, writer.at) >= best:
                best, found = (rank, writer.at), writer
        return found
