"""Attribute the lines that a commit adds to the sessions that wrote them, by hash and path."""

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate, compress
from math import log2
from typing import NamedTuple

from backscroll.archive.archive import Archive
from backscroll.commits.checkouts import CheckoutIndex, Relation
from backscroll.commits.commit_graph import CommitGraph
from backscroll.commits.lines import LINE_FORMAT, line_weight
from backscroll.commits.paths import base_name, implied_root, is_inside, normalize, repository_names
from backscroll.commits.scan import SessionWork
from backscroll.git.log import Commit
from backscroll.git.repository import Repository

SLACK_MS = 2_000  # commits have whole seconds
# A line that more edits or commits add is common. It says nothing about the session.
MAX_WRITERS, _MAX_ADDERS = 60, 40
_COMMON_LINE = 0.05
# A line counts in full for the session that wrote it last, and less for sessions that wrote it before.
_EARLIER_WRITER = 0.3
_SAME_PATH, _SAME_NAME, _UNKNOWN_PATH, _OTHER_PATH = 1.0, 0.8, 0.7, 0.5
_AFTER_AUTHOR_TIME = 0.8  # an amended commit keeps the time of its author
MIN_SUPPORT = 1.0  # weight of the lines from one session, in the same commit
_MIN_OTHER_PATH_SUPPORT = 2.0  # the same, if the session wrote them to another file
_MAX_FILES = 2  # a line that is written to more files says nothing about another file
_MIN_WEIGHT = 0.5  # of a line that was written before the parent commit, unless others support it
_OTHER_PATH_MS = 2 * 3600 * 1000  # before a commit, in which edits of other paths count
_MIN_UNKNOWN_SUPPORT, _MIN_UNKNOWN_OTHER_PATH_SUPPORT = 3.0, 4.0  # of a session in an unknown folder


class Writer(NamedTuple):
    """An edit that adds a line."""

    at: int  # milliseconds; 0 if unknown
    session: int
    path: str
    fragment_id: int
    position: int


class Adder(NamedTuple):
    """A file of a commit that adds a line."""

    authored_at: int  # milliseconds
    sha: str
    name: str  # of the file


class ContentMatch(NamedTuple):
    """Lines of a commit by session."""

    all_lines: float  # by weight
    line_count: int
    matched: dict[int, float]  # by weight, for each session
    matched_counts: dict[int, int]


class LineIndex:
    """Sessions and commits that add the lines of some commits."""

    def __init__(
        self,
        graph: CommitGraph,
        shas: Iterable[str],
        sessions: Sequence[SessionWork],
        relations: CheckoutIndex,
    ) -> None:
        self._graph = graph
        wanted: set[int] = set()
        for sha in shas:
            wanted.update(graph.lines(sha))
        self._writers = find_writers(wanted, sessions)
        self._adders = _find_adders(set(self._writers), graph)
        edited = {(writer.session, writer.path) for writers in self._writers.values() for writer in writers}
        self._foreign = {  # files in other repositories
            (session, path)
            for session, path in edited
            if relations.of_edit(sessions[session], path) is Relation.OTHER
        }

    def match(self, commit: Commit) -> ContentMatch:
        """Return the lines of a commit by the session that wrote them."""
        until = commit.authored_at * 1000 + SLACK_MS
        latest = max(until, commit.committed_at * 1000 + SLACK_MS)
        matched: dict[int, float] = defaultdict(float)
        counts: dict[int, int] = defaultdict(int)
        all_lines, line_count = 0.0, 0
        for path, lines in self._graph.file_lines(commit.sha):
            line_count += len(lines)
            for line in lines:
                writers = self._writers.get(line)
                if writers is None:
                    all_lines += line_weight(line)
                    continue
                adders = self._adders.get(line, [])
                if len(writers) > MAX_WRITERS or len(adders) > _MAX_ADDERS:
                    all_lines += _COMMON_LINE
                    continue
                weight = self._rarity(line, writers, adders, commit.sha)
                all_lines += weight
                credits = self._credits(commit, path, writers, adders, until, latest)
                for session, credit in credits:
                    matched[session] += credit * weight
                    counts[session] += 1
        return ContentMatch(all_lines, line_count, matched, counts)

    def _rarity(self, line: int, writers: list[Writer], adders: list[Adder], sha: str) -> float:
        """Return the weight of a line: less for short lines and for lines that are often written."""
        commits = sum(self._graph.is_ancestor(adder.sha, sha) for adder in adders)  # with the commit itself
        sessions = len({writer.session for writer in writers})
        return line_weight(line) / (1 + log2(max(1, commits)) + log2(max(1, sessions)) / 2)

    def _credits(
        self, commit: Commit, path: str, writers: list[Writer], adders: list[Adder], until: int, latest: int
    ) -> list[tuple[int, float]]:
        """Return the sessions that wrote a line before the commit and how much it counts for each."""
        before = [writer for writer in writers if writer.at <= until]
        factor = 1.0
        if not before:
            before = [writer for writer in writers if writer.at <= latest]
            factor = _AFTER_AUTHOR_TIME
        earlier = [
            adder
            for adder in adders
            if adder.sha != commit.sha and self._graph.is_ancestor(adder.sha, commit.sha)
        ]
        best: dict[int, tuple[float, int]] = {}
        for writer in before:
            if (writer.session, writer.path) in self._foreign:
                continue
            if any(is_committed(writer, adder) for adder in earlier):
                continue
            strength = _path_strength(writer.path, path), writer.at
            if strength > best.get(writer.session, (0.0, 0)):
                best[writer.session] = strength
        if not best:
            return []
        first = max(best, key=lambda session: best[session])
        return [
            (session, factor * strength * (1.0 if session == first else _EARLIER_WRITER))
            for session, (strength, _) in best.items()
        ]


def is_committed(writer: Writer, adder: Adder) -> bool:
    """Return whether an earlier commit already contains what was written."""
    return writer.at <= adder.authored_at and (not writer.path or base_name(writer.path) == adder.name)


def _path_strength(edited: str, tracked: str) -> float:
    if not edited:
        return _UNKNOWN_PATH
    if implied_root(edited, tracked) is not None:
        return _SAME_PATH
    return _SAME_NAME if base_name(edited) == base_name(tracked) else _OTHER_PATH


def select_fragments(archive: Archive, wanted: set[int], is_needed: Callable[[bytes], bool]) -> list[int]:
    """Return the fragments with edits that `find_writers` finds, and those with a needed scan.

    Of common lines, more edits than count are selected, so that they remain common.
    """
    selected: list[int] = []
    uncommon = set(wanted)
    counts: Counter[int] = Counter()
    for fragment_id, body, line_hashes in archive.edit_scans.contents():
        lines = array(LINE_FORMAT, line_hashes)
        if uncommon.isdisjoint(lines):
            if is_needed(body):
                selected.append(fragment_id)
            continue
        selected.append(fragment_id)
        hits = uncommon.intersection(lines)
        counts.update(hits)
        uncommon -= {line for line in hits if counts[line] > MAX_WRITERS + 1}
    return selected


def find_writers(
    wanted: set[int], sessions: Sequence[SessionWork], names: Collection[str] = ()
) -> dict[int, list[Writer]]:
    """Return the edits that add these lines, oldest first. Of a common line, only some.

    Of edits to files with one of these names, all are returned.
    """
    found: dict[int, list[Writer]] = {}
    uncommon = set(wanted)
    for number, session in enumerate(sessions):
        for fragment in session.fragments:
            lines = fragment.lines()
            is_named = any(map(fragment.names, names)) and any(
                base_name(normalize(edit.path)) in names for edit in fragment.edits
            )
            hits = (wanted if is_named else uncommon).intersection(lines)
            if not hits:
                continue
            ends = list(accumulate(edit.line_count for edit in fragment.edits))
            end, is_own = -1, False
            for index in compress(range(len(lines)), map(hits.__contains__, lines)):
                if index >= end:  # the next edit with one of the lines
                    place = bisect_right(ends, index)
                    edit, end = fragment.edits[place], ends[place]
                    path = normalize(edit.path)
                    writer = Writer(edit.at or 0, number, path, fragment.id, edit.position)
                    is_own = is_named and base_name(path) in names
                line = lines[index]
                writers = found.setdefault(line, [])
                if writers and writers[-1] is writer:
                    continue  # the edit repeats the line
                if is_own or len(writers) <= MAX_WRITERS:  # one more marks the line as common
                    writers.append(writer)
                else:
                    uncommon.discard(line)
    for writers in found.values():
        writers.sort()
    return found


def _find_adders(wanted: set[int], graph: CommitGraph) -> dict[int, list[Adder]]:
    """Return the commits that add these lines. Of a common line, only some."""
    found: dict[int, list[Adder]] = {}
    uncommon = set(wanted)
    for sha in graph.with_any(uncommon):
        authored_at = graph.commits[sha].authored_at * 1000 + SLACK_MS
        hits = uncommon.intersection(graph.lines(sha))
        for path, lines in graph.file_lines(sha):
            for line in hits.intersection(lines):
                adders = found.setdefault(line, [])
                adders.append(Adder(authored_at, sha, base_name(path)))
                if len(adders) > _MAX_ADDERS:  # one more marks the line as common
                    uncommon.discard(line)
    return found


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


class AddedLine(NamedTuple):
    """A line that a commit adds."""

    hashed: int
    path: str
    old_path: str | None  # if the commit renames the file


class EditMatcher:
    """Finds the edit behind each line that a commit adds, for `blame` and `survival`."""

    def __init__(self, writers: Mapping[int, Sequence[Writer]], paths: PathIndex) -> None:
        self._writers = writers
        self._paths = paths
        self._file_counts: dict[int, int] = {}

    def rank(self, writer: Writer, line: AddedLine) -> int:
        """Return how well the path of an edit matches the file, also by its name before the commit."""
        rank = self._paths.rank(writer.session, writer.path, line.path)
        if line.old_path is not None and rank < PathIndex.SAME_FILE:
            rank = max(rank, self._paths.rank(writer.session, writer.path, line.old_path))
        return rank

    def is_same_path(self, writer: Writer, line: AddedLine) -> bool:
        return self.rank(writer, line) >= PathIndex.SAME_PATH

    def rarity(self, hashed: int) -> float:
        """Return the weight of a line: less for short lines, and for lines that are written to many files."""
        return line_weight(hashed) / (1 + log2(max(1, self._file_count(hashed))))

    def _file_count(self, hashed: int) -> int:
        """Return to how many files a line was written."""
        if hashed not in self._file_counts:
            paths = {writer.path for writer in self._writers.get(hashed, ())} - {""}
            # The same file in another checkout ends with the same folder and name.
            self._file_counts[hashed] = len({"/".join(path.rsplit("/", 2)[-2:]) for path in paths})
        return self._file_counts[hashed]

    def candidates(self, line: AddedLine, writers: Iterable[Writer], start: int, until: int) -> list[Writer]:
        """Return the edits that can have written a line.

        An edit of another path counts only since the parent commit, or in the two hours before the commit:
        many files contain equal lines.
        """
        start = min(start, until - _OTHER_PATH_MS)
        return [writer for writer in writers if writer.at >= start or self.is_same_path(writer, line)]

    def support(self, lines: Iterable[tuple[AddedLine, Sequence[Writer]]]) -> dict[int, float]:
        """Return the weight of the lines in one commit that each session can have written."""
        found: dict[int, float] = defaultdict(float)
        for line, writers in lines:
            ranks = [self.rank(writer, line) for writer in writers]
            best = max(ranks, default=PathIndex.FOREIGN)
            if best == PathIndex.FOREIGN or (best < PathIndex.SAME_PATH and self.is_frequent(line.hashed)):
                continue
            sessions = {writer.session for writer, rank in zip(writers, ranks, strict=True) if rank == best}
            for session in sessions:
                found[session] += self.rarity(line.hashed) / (1 + log2(len(sessions)))
        return found

    def choose(
        self, line: AddedLine, writers: Iterable[Writer], support: Mapping[int, float], start: int
    ) -> Writer | None:
        """Return the last edit of the best matching file; None if the lines of its session are too few."""
        best: tuple[int, int] | None = None
        found: Writer | None = None
        for writer in writers:
            rank = self.rank(writer, line)
            if (best is None or (rank, writer.at) >= best) and self._is_accepted(
                writer, line.hashed, rank, support.get(writer.session, 0.0), start
            ):
                best, found = (rank, writer.at), writer
        return found

    def is_frequent(self, hashed: int) -> bool:
        return self._file_count(hashed) > _MAX_FILES

    def _is_accepted(self, writer: Writer, hashed: int, rank: int, support: float, start: int) -> bool:
        if rank == PathIndex.FOREIGN:
            return False
        if rank >= PathIndex.SAME_CLONE:
            return writer.at >= start or line_weight(hashed) >= _MIN_WEIGHT or support >= MIN_SUPPORT
        if rank < PathIndex.SAME_PATH and self.is_frequent(hashed):
            return False
        is_script = not writer.path and writer.at >= start and self._paths.is_local(writer.session)
        return support >= (MIN_SUPPORT if is_script else self._paths.min_support(writer.session, rank))
