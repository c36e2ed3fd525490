"""The commits of a repository: what they add, ancestors, branches, time windows."""

import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec import Struct

from backscroll.archive.archive import Archive
from backscroll.commits.lines import LINE_FORMAT, code_lines, hash_lines
from backscroll.git.log import Commit, FileChange, read_changes, read_modifications
from backscroll.git.repository import Repository
from backscroll.model.sync import Progress

COMMIT_VERSION = 2  # raise it if the stored content of commits changes
_BATCH = 200  # commits per transaction
_MAX_GRAPH_COMMITS = 20_000  # a larger history has no ancestor sets: they need the square of it in bits
_FIRST_WINDOW_SECONDS = 24 * 3600  # before the first commit
_UNKNOWN_WINDOW_SECONDS = 30 * 60  # before a commit without a known earlier parent
_NEVER = 1 << 60  # later than any time
_MERGED_BRANCH = re.compile(
    r"^Merge (?:remote-tracking )?(?:branch '([^']+)'|pull request #\d+ from [^/\s]+/(\S+))"
)

_encoder = msgspec.msgpack.Encoder()
EncodedChanges = tuple[bytes, bytes]  # files, line hashes


class CommittedFile(Struct, array_like=True, gc=False):
    """A file that a commit changes."""

    path: str
    old_path: str | None
    line_count: int  # distinct added lines


_decoder = msgspec.msgpack.Decoder(list[CommittedFile])


class CommitGraph:
    """Commits of one repository that can have sessions. Merges are skipped."""

    def __init__(
        self,
        repository: Repository,
        commits: Sequence[Commit],
        stored: dict[str, EncodedChanges],
        parents: Iterable[Commit] = (),
    ) -> None:
        self.repository = repository
        self.commits = {commit.sha: commit for commit in (*parents, *commits)}
        self._stored = stored
        self._positions = {commit.sha: position for position, commit in enumerate(reversed(commits))}
        self._ancestors = self._ancestor_sets(commits) if len(commits) <= _MAX_GRAPH_COMMITS else None
        self._listed = commits
        self._files: dict[str, list[CommittedFile]] = {}
        self._renames: dict[str, dict[str, str]] = {}  # of commits: new to old path

    @property
    def with_lines(self) -> Iterable[str]:
        """The hashes of the commits whose content is known."""
        return self._stored.keys()

    def with_any(self, wanted: set[int]) -> Iterator[str]:
        """Yield the hashes of the commits that add one of the lines."""
        for sha, (_, line_hashes) in self._stored.items():
            if not wanted.isdisjoint(array(LINE_FORMAT, line_hashes)):
                yield sha

    def files(self, sha: str) -> list[CommittedFile]:
        """Return the files that a commit changes; none if it was not read."""
        if sha not in self._files:
            stored = self._stored.get(sha)
            self._files[sha] = _decoder.decode(stored[0]) if stored is not None else []
        return self._files[sha]

    def old_path(self, sha: str, path: str) -> str | None:
        """Return the path that a commit renames to another one, None if it does not."""
        if sha not in self._renames:
            files = self.files(sha)
            self._renames[sha] = {file.path: file.old_path for file in files if file.old_path is not None}
        return self._renames[sha].get(path)

    def lines(self, sha: str) -> "array[int]":
        """Return the hashes of the lines that a commit adds, file by file."""
        stored = self._stored.get(sha)
        return array(LINE_FORMAT, stored[1] if stored is not None else b"")

    def file_lines(self, sha: str) -> Iterator[tuple[str, "array[int]"]]:
        """Yield the path of each file that a commit changes, with the hashes of the lines that it adds."""
        lines, start = self.lines(sha), 0
        for file in self.files(sha):
            yield file.path, lines[start : start + file.line_count]
            start += file.line_count

    def is_ancestor(self, ancestor: str, sha: str) -> bool:
        """Return whether a commit is an ancestor of another one. A large history is treated as linear."""
        if self._ancestors is None:
            return self.commits[ancestor].committed_at < self.commits[sha].committed_at
        position = self._positions[ancestor]
        return bool(self._ancestors[sha][position >> 3] >> (position & 7) & 1)

    def window_start(self, commit: Commit) -> int:
        """Return the time since which work can belong to a commit: that of its parent, in seconds."""
        if not commit.parents:
            return window_start(commit.authored_at, None)
        parent = self.commits.get(commit.parents[0])
        return window_start(commit.authored_at, parent.authored_at if parent is not None else _NEVER)

    def branches(self, commit: Commit) -> set[str]:
        """Return the branches that a commit was made on or merged from, as far as they are known."""
        merged = self._merged_branches.get(commit.sha, set())
        ref = self.repository.branch if commit.ref == "HEAD" else commit.ref.removeprefix("refs/heads/")
        return {ref, *merged} if ref else merged

    def _ancestor_sets(self, commits: Sequence[Commit]) -> dict[str, bytes]:
        """Return the ancestors of each commit as a bit set, with the commit itself."""
        found: dict[str, int] = {}
        for commit in reversed(commits):  # children precede their parents in the list
            ancestors = 1 << self._positions[commit.sha]
            for parent in commit.parents:
                ancestors |= found.get(parent, 0)
            found[commit.sha] = ancestors
        size = (
            len(commits) // 8 + 1
        )  # of a set, in bytes: a single bit of it is read faster than of an integer
        return {sha: ancestors.to_bytes(size, "little") for sha, ancestors in found.items()}

    @cached_property
    def _merged_branches(self) -> dict[str, set[str]]:
        """Branches that commits were merged from, by hash."""
        names: dict[str, set[str]] = {}
        if self._ancestors is None:
            return names
        merges = [commit for commit in self._listed if len(commit.parents) == 2]
        by_position = {position: sha for sha, position in self._positions.items()} if merges else {}
        for merge in merges:
            match = _MERGED_BRANCH.match(merge.subject)
            if match is None:
                continue
            first, second = (
                int.from_bytes(self._ancestors.get(parent, b""), "little") for parent in merge.parents
            )
            merged = second & ~first
            while merged:
                lowest = merged & -merged
                names.setdefault(by_position[lowest.bit_length() - 1], set()).add(match[1] or match[2])
                merged ^= lowest
        return names


def window_start(authored_at: int, parent_at: int | None) -> int:
    """Return the time since which work can belong to a commit, in seconds. ``parent_at`` is of its parent."""
    if parent_at is None:
        return authored_at - _FIRST_WINDOW_SECONDS
    if parent_at >= authored_at:  # not in the clone, or rebased
        return authored_at - _UNKNOWN_WINDOW_SECONDS
    return parent_at


def read_graph(
    archive: Archive,
    repository: Repository,
    commits: Sequence[Commit],
    *,
    since: int,
    parents: Iterable[Commit] = (),
    partial: Mapping[str, EncodedChanges] | None = None,
    progress: Progress | None = None,
) -> CommitGraph:
    """Return the graph of commits, given newest first. Changes before ``since`` (seconds) are not read.

    Of other ``parents``, only the time is used. ``partial`` are changes of the files that matter. They are
    used for commits that are not stored.
    """
    partial = partial or {}
    relevant = _relevant(commits, since)
    known = archive.commit_cache.known(COMMIT_VERSION)
    missing = [sha for sha in relevant if sha not in known and sha not in partial]
    batch: list[tuple[str, bytes, bytes]] = []
    for done, (sha, changes) in enumerate(read_changes(repository, missing), start=1):
        batch.append((sha, *_encode(changes)))
        if len(batch) == _BATCH:
            archive.commit_cache.put_commits(batch, COMMIT_VERSION)
            batch = []
            if progress is not None:
                progress(done, len(missing))
    if batch:
        archive.commit_cache.put_commits(batch, COMMIT_VERSION)
    stored = archive.commit_cache.commits(relevant, are_most=2 * len(relevant) > len(known))
    return CommitGraph(repository, commits, {**partial, **stored}, parents)


def read_partial_changes(
    repository: Repository,
    commits: Sequence[Commit],
    paths: Collection[str],
    *,
    known: Collection[str],
    since: int,
) -> dict[str, EncodedChanges]:
    """Return the changes of some files in commits that are not known, except of commits that add one."""
    missing = [sha for sha in _relevant(commits, since) if sha not in known]
    return {
        sha: _encode(changes)
        for sha, changes in read_modifications(repository, missing, paths)
        if changes is not None
    }


def _relevant(commits: Iterable[Commit], since: int) -> list[str]:
    return [commit.sha for commit in commits if not commit.is_merge and commit.committed_at >= since]


def _encode(changes: Sequence[FileChange]) -> EncodedChanges:
    files: list[CommittedFile] = []
    hashes = array(LINE_FORMAT)
    for change in changes:
        lines = hash_lines(code_lines(change.path, change.added))
        files.append(CommittedFile(change.path, change.old_path, len(lines)))
        hashes.extend(lines)
    return _encoder.encode(files), hashes.tobytes()
