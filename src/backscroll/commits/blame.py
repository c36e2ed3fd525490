"""The commit, the session and the prompt behind each line of a file.

Lines are compared with edits by hash, as for commits. Then the text of the edits is read for the lines that
have no hash, such as a brace, or that a formatter wrapped.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from backscroll.archive.archive import Archive
from backscroll.archive.storage.codec import to_milliseconds
from backscroll.commits.checkouts import CheckoutIndex
from backscroll.commits.commit_graph import (
    COMMIT_VERSION,
    CommitGraph,
    EncodedChanges,
    read_graph,
    read_partial_changes,
)
from backscroll.commits.content import (
    MIN_SUPPORT,
    SLACK_MS,
    AddedLine,
    EditMatcher,
    PathIndex,
    Writer,
    find_writers,
    select_fragments,
)
from backscroll.commits.lines import (
    MIN_LINE_CHARS,
    EditText,
    code_lines,
    hash_each,
    normalize_lines,
    without_commas,
)
from backscroll.commits.paths import base_name, normalize
from backscroll.commits.scan import SessionWork, edit_texts, load_sessions, update_scans
from backscroll.git.log import BlamedLine, Commit, TracedLine, blame, list_file_commits, read_commits
from backscroll.git.process import decode
from backscroll.git.repository import Repository
from backscroll.model.commit import BlameLine
from backscroll.model.message import TYPED_KINDS, Message
from backscroll.model.session import SessionSummary
from backscroll.model.sync import Progress

_MIN_WRAPPED_CHARS = 12  # of lines that a formatter wrapped or joined, without white space
_MAX_WRAPPED_LINES = 40
_MAX_EDITS = 2_000  # whose text is read
_NEVER = 1 << 60  # later than any time
_SLACK_SECONDS = 120


class _EditKey(NamedTuple):
    """A call that wrote lines."""

    session: int  # index in the list of sessions
    fragment_id: int
    position: int


class _EditPrompt(Struct, frozen=True):
    """An edit in its session."""

    session_ref: str | None
    message_id: str | None  # of the edit; of the call that started the subagent, if a subagent made it
    first: int | None  # message of the turn
    last: int | None
    prompt: str | None  # the user's words
    prompt_id: str | None
    agent_ref: str | None  # the subagent


_NO_PROMPT = _EditPrompt(None, None, None, None, None, None, None)


def blame_file(
    archive: Archive,
    repository: Repository,
    file: Path,
    *,
    lines: tuple[int, int] | None = None,
    revision: str | None = None,
    progress: Progress | None = None,
) -> list[BlameLine]:
    """Return the lines of a file with commit, session and prompt. See `backscroll.git.log`."""
    traced = blame(repository, file, lines, revision=revision)
    update_scans(archive, progress)
    first_edit = archive.edit_scans.first_edit_at()
    since = first_edit // 1000 - _SLACK_SECONDS if first_edit is not None else _NEVER
    known = archive.commit_cache.known(COMMIT_VERSION)
    with ThreadPoolExecutor(max_workers=1) as executor:  # git works while the sessions are loaded
        blamed = [line for each in traced for line in (each.origin, each.added)]
        reading = executor.submit(_read_history, repository, blamed, revision, known, since)
        sessions, writers = _find_writers(archive, blamed)
        history = reading.result()
    graph = read_graph(
        archive,
        repository,
        history.commits,
        since=since,
        parents=[*history.commits, *history.parents],
        partial=history.changes,
        progress=progress,
    )
    paths = PathIndex(CheckoutIndex(archive, repository), repository, sessions)
    matcher = EditMatcher(writers, paths)
    blamed = _choose_commits(graph, traced, writers, matcher)
    edits = _LineMatcher(graph, blamed, writers, matcher).match()
    _TextMatcher(archive, graph, blamed, sessions, paths, writers).complete(edits)
    prompts = _find_prompts(archive, sessions, {edit for edit in edits if edit is not None})
    return [
        _line(line, graph.commits.get(line.sha or ""), prompts.get(edit, _NO_PROMPT) if edit else _NO_PROMPT)
        for line, edit in zip(blamed, edits, strict=True)
    ]


def _find_writers(
    archive: Archive, lines: Sequence[BlamedLine]
) -> tuple[list[SessionWork], dict[int, list[Writer]]]:
    """Return the sessions that wrote one of the lines or changed a file of the same name, and their edits."""
    wanted = {hashed for hashed in _line_hashes(lines) if hashed is not None}
    names = {base_name(line.path) for line in lines}
    encoded = [name.encode() for name in names]
    selected = select_fragments(archive, wanted, lambda scan: any(name in scan for name in encoded))
    sessions = load_sessions(archive, selected)
    return sessions, find_writers(wanted, sessions, names)


class _History(NamedTuple):
    commits: list[Commit]  # of the lines, and the others that change the same files
    parents: list[Commit]
    changes: dict[str, EncodedChanges]  # of the files


def _read_history(
    repository: Repository,
    lines: Sequence[BlamedLine],
    revision: str | None,
    known: Collection[str],
    since: int,
) -> _History:
    """Return the commits of the files. The changes of ``known`` commits are not read."""
    shas = {line.sha for line in lines if line.sha is not None}
    head = (
        read_commits(repository, ["HEAD"])
        if repository.has_commits and None in {line.sha for line in lines}
        else []
    )
    if not shas:
        return _History([], head, {})
    paths = sorted({line.path for line in lines})
    commits = list_file_commits(repository, paths, ref=revision or "HEAD")
    commits += read_commits(repository, sorted(shas - {commit.sha for commit in commits}))
    parents = {commit.parents[0] for commit in commits if commit.sha in shas and commit.parents}
    return _History(
        commits,
        [*head, *read_commits(repository, sorted(parents - {commit.sha for commit in commits}))],
        read_partial_changes(repository, commits, paths, known=known, since=since),
    )


def _line(line: BlamedLine, commit: Commit | None, prompt: _EditPrompt) -> BlameLine:
    return BlameLine(
        line=line.number,
        text=decode(line.text).removesuffix("\r"),
        sha=line.sha,
        **asdict(prompt),
        author=commit.author if commit is not None else None,
        at=datetime.fromtimestamp(commit.authored_at, UTC) if commit is not None else None,
        subject=commit.subject if commit is not None else None,
    )


def _choose_commits(
    graph: CommitGraph,
    traced: Sequence[TracedLine],
    writers: Mapping[int, Sequence[Writer]],
    matcher: EditMatcher,
) -> list[BlamedLine]:
    """Return the lines with the commit that each one comes from.

    Git takes new lines for a copy if older files contain them too. A line is new if a session wrote it to
    the file after the last commit that changed the file. Lines that many files contain are new, too.
    """
    hashes = _line_hashes([each.added for each in traced])
    times = _file_times(graph)

    def is_new(place: int) -> bool | None:
        origin, added = traced[place]
        hashed = hashes[place]
        if origin.sha == added.sha:
            return True
        if hashed is None or hashed not in writers:
            return None
        line = _added_line(graph, added, hashed)
        until = _authored_at(graph, added)
        paths = [path for path in (line.path, line.old_path) if path is not None]
        earlier = [at for path in paths for at in times[path] if at < until]
        start = min(_window_start(graph, added), max(earlier, default=0))
        return any(
            start <= writer.at <= until + SLACK_MS and matcher.is_same_path(writer, line)
            for writer in writers[hashed]
        )

    new: list[bool] = []
    for _, same_commit in groupby(range(len(traced)), key=lambda place: traced[place].added.sha):
        new += _without_gaps([is_new(place) for place in same_commit])
    found: list[BlamedLine] = []
    for (is_added, _, _), run in groupby(
        range(len(traced)),
        key=lambda place: (new[place], traced[place].origin.sha, traced[place].origin.path),
    ):
        places = [*run]
        rarity = sum(matcher.rarity(hashed) for place in places if (hashed := hashes[place]) is not None)
        is_frequent = rarity < MIN_SUPPORT
        found += [
            traced[place].added if is_added or is_frequent else traced[place].origin for place in places
        ]
    return found


def _without_gaps(values: Sequence[bool | None]) -> list[bool]:
    """Return the values, each unknown one replaced: true if the next known ones on both sides are."""
    found: list[bool] = []
    for value, group in groupby(values):
        count = len([*group])
        if value is None:
            after = next((each for each in values[len(found) + count :] if each is not None), None)
            sides = [each for each in (found[-1] if found else None, after) if each is not None]
            value = bool(sides) and all(sides)
        found += [value] * count
    return found


def _file_times(graph: CommitGraph) -> dict[str, list[int]]:
    """Return the times of the commits that change each file, in milliseconds."""
    found: dict[str, list[int]] = defaultdict(list)
    for sha in graph.with_lines:
        if sha in graph.commits:
            for file in graph.files(sha):
                found[file.path].append(graph.commits[sha].authored_at * 1000)
    return found


def _added_line(graph: CommitGraph, line: BlamedLine, hashed: int) -> AddedLine:
    old_path = graph.old_path(line.sha, line.path) if line.sha is not None else None
    return AddedLine(hashed, line.path, old_path)


def _authored_at(graph: CommitGraph, line: BlamedLine) -> int:
    return graph.commits[line.sha].authored_at * 1000 if line.sha is not None else _NEVER


def _line_hashes(lines: Sequence[BlamedLine]) -> list[int | None]:
    """Return the hash of each line, None if it is too short."""
    return [hashed or None for hashed in hash_each(_code(lines))]


class _LineMatcher:
    """Matches lines with edits by hash."""

    def __init__(
        self,
        graph: CommitGraph,
        lines: Sequence[BlamedLine],
        writers: dict[int, list[Writer]],
        matcher: EditMatcher,
    ) -> None:
        self._graph = graph
        self._lines = lines
        self._matcher = matcher
        self._hashes = _line_hashes(lines)
        self._writers = writers
        self._commit_times = self._find_commits({line.path for line in lines})
        self._unused: dict[tuple[int, str | None], list[Writer]] = {}  # by hash and commit
        self._names: dict[str, str] = {}  # of paths
        self._first_times: dict[int, int] = {}  # of the commits of each line
        for line, hashed in zip(lines, self._hashes, strict=True):
            if hashed in self._writers:
                authored_at = _authored_at(self._graph, line)
                self._first_times[hashed] = min(authored_at, self._first_times.get(hashed, authored_at))

    def _find_commits(self, paths: Collection[str]) -> dict[int, list[tuple[int, str]]]:
        """Return times of the commits that add each line to one of the files, and its name, oldest first."""
        wanted = set(self._writers)
        found: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for sha in self._graph.with_any(wanted):
            authored_at = self._graph.commits[sha].authored_at * 1000
            for path, lines in self._graph.file_lines(sha):
                if path in paths:
                    for hashed in wanted.intersection(lines):
                        found[hashed].append((authored_at, base_name(path)))
        for times in found.values():
            times.sort()
        return found

    def match(self) -> list[_EditKey | None]:
        """Return the edit of each line, None if it is not known."""
        by_commit: dict[str | None, list[int]] = defaultdict(list)
        for number, hashed in enumerate(self._hashes):
            if hashed in self._writers:
                by_commit[self._lines[number].sha].append(number)
        found: list[_EditKey | None] = [None] * len(self._lines)
        for numbers in by_commit.values():
            start = _window_start(self._graph, self._lines[numbers[0]])
            lines = [
                (
                    _added_line(self._graph, self._lines[number], self._hashes[number] or 0),
                    self._candidates(number),
                )
                for number in numbers
            ]
            support = self._matcher.support(lines)
            for number, (line, writers) in zip(numbers, lines, strict=True):
                writer = self._matcher.choose(line, writers, support, start)
                if writer is not None:
                    found[number] = _EditKey(writer.session, writer.fragment_id, writer.position)
        return found

    def _candidates(self, number: int) -> list[Writer]:
        """Return the edits that can have written a line: before its commit, and not for an earlier one."""
        line, hashed = self._lines[number], self._hashes[number]
        if hashed is None or hashed not in self._writers:
            return []
        authored_at = _authored_at(self._graph, line)
        before = self._before(hashed, authored_at)
        if not before and line.sha is not None:  # an amended commit keeps the time of its author
            before = self._before(hashed, self._graph.commits[line.sha].committed_at * 1000)
        if (hashed, line.sha) not in self._unused:
            self._unused[hashed, line.sha] = self._without_committed(hashed, authored_at, before)
        added = _added_line(self._graph, line, hashed)
        start = _window_start(self._graph, line)
        unused = self._matcher.candidates(added, self._unused[hashed, line.sha], start, authored_at)
        if unused or self._first_times[hashed] < authored_at or self._matcher.is_frequent(hashed):
            return unused
        # No other line of the file comes from the earlier commit: this commit only moved or reformatted it.
        return [writer for writer in before if self._matcher.is_same_path(writer, added)]

    def _before(self, hashed: int, until: int) -> list[Writer]:
        writers = self._writers[hashed]
        return writers[: bisect_right(writers, (until + SLACK_MS, _NEVER))]

    def _without_committed(self, hashed: int, authored_at: int, writers: Sequence[Writer]) -> list[Writer]:
        """Return the edits that no commit before a time contains.

        Commits that add the line to other files are not considered.
        """
        times = self._commit_times.get(hashed, [])
        last = {name: at + SLACK_MS for at, name in times if at < authored_at}  # of each name
        if not last:
            return [*writers]
        newest = max(last.values())
        last[""] = newest  # the path of the edit is not known
        start = bisect_right(writers, (newest, _NEVER))
        earlier = [writer for writer in writers[:start] if writer.at > last.get(self._name(writer.path), -1)]
        return [*earlier, *writers[start:]]

    def _name(self, path: str) -> str:
        if path not in self._names:
            self._names[path] = base_name(path)
        return self._names[path]


def _code(lines: Sequence[BlamedLine]) -> Sequence[bytes]:
    return code_lines(lines[0].path, [line.text for line in lines]) if lines else []


def _window_start(graph: CommitGraph, line: BlamedLine) -> int:
    """Return the time since which edits can belong to the line's commit, in milliseconds."""
    if line.sha is not None:
        return graph.window_start(graph.commits[line.sha]) * 1000
    return max((commit.authored_at * 1000 for commit in graph.commits.values()), default=0)


class _TextMatcher:
    """Matches the remaining lines with the text of edits."""

    def __init__(
        self,
        archive: Archive,
        graph: CommitGraph,
        lines: Sequence[BlamedLine],
        sessions: Sequence[SessionWork],
        paths: PathIndex,
        writers: Mapping[int, Sequence[Writer]],
    ) -> None:
        self._archive = archive
        self._graph = graph
        self._lines = lines
        self._sessions = sessions
        self._paths = paths
        self._normalized = normalize_lines(b"\n".join(_code(lines)))
        self._texts: dict[_EditKey, EditText] = {}
        self._is_known = [hashed in writers for hashed in _line_hashes(lines)]  # by `_LineMatcher`
        self._times: dict[_EditKey, int] = {}  # in milliseconds
        self._in_times: dict[str | None, list[_EditKey]] = {}
        commits = (graph.commits[line.sha] for line in lines if line.sha is not None)
        self._last_commit_at = max((commit.authored_at * 1000 for commit in commits), default=0)

    def complete(self, found: list[_EditKey | None]) -> None:
        """Add the edits of lines that are next to found ones, short, or wrapped."""
        edits = self._edits_of_file({key.session for key in found if key is not None})
        self._times = {key: at for at, key in edits}
        keys = dict.fromkeys([*filter(None, found), *(key for _, key in reversed(edits))])
        needed = self._needed(found, edits)
        self._texts = self._read([key for key in [*keys][:_MAX_EDITS] if key in needed])
        self._extend(found, range(1, len(found)), -1)
        self._extend(found, range(len(found) - 2, -1, -1), 1)
        for first, last in _gaps(found):
            self._match_gap(found, first, last, edits)
        self._extend(found, range(1, len(found)), -1)
        self._extend(found, range(len(found) - 2, -1, -1), 1)

    def _needed(
        self, found: Sequence[_EditKey | None], edits: Sequence[tuple[int, _EditKey]]
    ) -> set[_EditKey]:
        """Return the edits that can have written a line without an edit: near it, or in its time."""
        needed: set[_EditKey] = set()
        for first, last in _gaps(found):
            needed.update(filter(None, (*found[max(0, first - 1) : first], *found[last + 1 : last + 2])))
            for line in {line.sha: line for line in self._lines[first : last + 1]}.values():
                needed.update(self._in_time(line, edits))
        return needed

    def _extend(self, found: list[_EditKey | None], order: Iterable[int], step: int) -> None:
        """Continue the edit of the next line, if the line is empty or follows it in the edit too."""
        for number in order:
            key = found[number + step]
            if found[number] is not None or key is None:
                continue
            if key not in self._texts or not self._is_before(key, number):
                continue
            pair = self._normalized[number], self._normalized[number + step]
            is_same_commit = self._lines[number].sha == self._lines[number + step].sha
            if (not pair[0] and is_same_commit) or (pair if step > 0 else pair[::-1]) in self._texts[
                key
            ].pairs:
                found[number] = key

    def _match_gap(
        self, found: list[_EditKey | None], first: int, last: int, edits: Sequence[tuple[int, _EditKey]]
    ) -> None:
        """Match consecutive lines without an edit, as a whole and one by one."""
        number = first
        while number <= last:
            neighbours = [found[near] for near in (number - 1, last + 1) if 0 <= near < len(found)]
            earlier = [
                key
                for key in neighbours
                if key is not None and not self._is_known[number] and self._is_before(key, number)
            ]
            keys = dict.fromkeys([*earlier, *self._in_time(self._lines[number], edits)])
            count, key = 0, None
            for each in keys:
                matching = self._matching_count(number, last, self._texts[each]) if each in self._texts else 0
                if matching > count:
                    count, key = matching, each
            found[number : number + count] = [key] * count
            number += max(1, count)

    def _is_before(self, key: _EditKey, number: int) -> bool:
        """Return False if an edit is later than a line: it repeats the lines around its change."""
        return self._times.get(key, 0) <= _authored_at(self._graph, self._lines[number]) + SLACK_MS

    def _in_time(self, line: BlamedLine, edits: Sequence[tuple[int, _EditKey]]) -> list[_EditKey]:
        """Return the edits between the line's commit and its parent, newest first."""
        if line.sha not in self._in_times:
            start, until = self._last_commit_at, _NEVER
            if line.sha is not None:
                start = _window_start(self._graph, line)
                until = self._graph.commits[line.sha].authored_at * 1000 + SLACK_MS
            self._in_times[line.sha] = [key for at, key in reversed(edits) if start <= at <= until]
        return self._in_times[line.sha]

    def _matching_count(self, first: int, last: int, text: EditText) -> int:
        """Return how many lines, from the first one on, an edit contains, however they are wrapped."""
        line = self._normalized[first]
        # A line without a hash: short, but with a name or number.
        count = 1 if line in text.lines and any(map(_is_word, line)) else 0
        joined = b""
        for number in range(first, min(last + 1, first + _MAX_WRAPPED_LINES)):
            joined += without_commas(self._normalized[number])
            is_other = self._lines[number].sha != self._lines[first].sha
            if (is_other and len(self._normalized[number]) >= MIN_LINE_CHARS) or joined not in text.joined:
                break
            if len(joined) >= _MIN_WRAPPED_CHARS and text.contains(joined):
                count = number - first + 1
        return count

    def _edits_of_file(self, found_sessions: set[int]) -> list[tuple[int, _EditKey]]:
        """Return the edits of the blamed files with their times, oldest first.

        Of a file that is perhaps of another project, only the edits of sessions that wrote other lines.
        """
        tracked = {line.path for line in self._lines}
        names = tuple({base_name(path) for path in tracked})
        found: list[tuple[int, _EditKey]] = []
        for number, session in enumerate(self._sessions):
            for fragment in session.fragments:
                for edit in fragment.edits:
                    if edit.is_shell or not edit.path.endswith(names):
                        continue
                    path = normalize(edit.path)
                    rank = max(self._paths.rank(number, path, file) for file in tracked)
                    if rank >= (PathIndex.SAME_PATH if number in found_sessions else PathIndex.SAME_CLONE):
                        found.append((edit.at or 0, _EditKey(number, fragment.id, edit.position)))
        return sorted(found)

    def _read(self, keys: Sequence[_EditKey]) -> dict[_EditKey, EditText]:
        messages = self._archive.messages.at_positions([(key.fragment_id, key.position) for key in keys])
        found: dict[_EditKey, EditText] = {}
        for key in keys:
            message = messages.get((key.fragment_id, key.position))
            if message is not None and message.tool is not None:
                found[key] = EditText(each.text for each in edit_texts(message.tool))
        return found


def _is_word(character: int) -> bool:
    return character > 127 or chr(character).isalnum()


def _gaps(found: Sequence[_EditKey | None]) -> list[tuple[int, int]]:
    """Return the first and the last line of each run without an edit."""
    gaps: list[tuple[int, int]] = []
    for number, key in enumerate(found):
        if key is not None:
            continue
        if gaps and gaps[-1][1] == number - 1:
            gaps[-1] = gaps[-1][0], number
        else:
            gaps.append((number, number))
    return gaps


def _find_prompts(
    archive: Archive, sessions: Sequence[SessionWork], edits: Iterable[_EditKey]
) -> dict[_EditKey, _EditPrompt]:
    """Return the prompts of edits. Edits of sessions that were just erased are omitted."""
    by_session: defaultdict[int, set[_EditKey]] = defaultdict(set)
    for edit in edits:
        by_session[edit.session].add(edit)
    summaries = archive.sessions.by_ids(sessions[number].number for number in by_session)
    found: dict[_EditKey, _EditPrompt] = {}
    for number, keys in by_session.items():
        summary = summaries.get(sessions[number].number)
        if summary is not None:
            found |= _SessionReader(archive, summary, sessions[number]).prompts(sorted(keys))
    return found


class _SessionReader:
    """Reads single messages of a session."""

    def __init__(self, archive: Archive, summary: SessionSummary, session: SessionWork) -> None:
        self._archive = archive
        self._summary = summary
        self._agents = {fragment.id: fragment.agent_id for fragment in session.fragments}
        single = archive.messages.single_fragment(summary)
        self._fragment_id = single[0] if single is not None else None

    def prompts(self, keys: Sequence[_EditKey]) -> dict[_EditKey, _EditPrompt]:
        """Return the turns and prompts of edits."""
        edited = self._archive.messages.at_positions([(key.fragment_id, key.position) for key in keys])
        found: dict[_EditKey, _EditPrompt] = {}
        for key in keys:
            message = edited.get((key.fragment_id, key.position))
            position = self._position(key, message) if message is not None else None
            if message is not None and position is not None:
                found[key] = self._prompt(position, self._agents.get(key.fragment_id) or message.agent_id)
        return found

    def _prompt(self, position: int, agent_id: str | None) -> _EditPrompt:
        starts = self._starts
        number = bisect_right(starts, position) - 1
        first = starts[number] if number >= 0 else 0
        last = (starts[number + 1] if number + 1 < len(starts) else self._count) - 1
        asked = self._typed(number)
        message = self._message(position)
        return _EditPrompt(
            self._summary.ref,
            message.id,
            first,
            last,
            asked.content if asked is not None else None,
            asked.id if asked is not None else None,
            f"{self._summary.source}:{agent_id}" if agent_id is not None else None,
        )

    def _typed(self, number: int) -> Message | None:
        """Return the message that starts a turn, or the last one before it that the user typed."""
        first = self._message(self._starts[number]) if number >= 0 else None
        for earlier in range(number, -1, -1):
            message = self._message(self._starts[earlier])
            if message.kind in TYPED_KINDS and message.content.strip():
                return message
        return first

    def _position(self, key: _EditKey, message: Message) -> int | None:
        """Return the position in the session of an edit, or of the call that started its subagent."""
        if key.fragment_id == self._fragment_id:
            return key.position
        agent_id = self._agents.get(key.fragment_id)
        if agent_id is not None:
            return call_position(self._calls.get(agent_id), message, self._messages)
        return self._positions.get(message.id)

    def _message(self, position: int) -> Message:
        if self._fragment_id is None:
            return self._messages[position]
        key = self._fragment_id, position
        return self._archive.messages.at_positions([key])[key]

    @cached_property
    def _messages(self) -> list[Message]:
        return list(self._archive.messages.without_usage(self._summary))

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {message.id: position for position, message in enumerate(self._messages)}

    @cached_property
    def _calls(self) -> dict[str, str | None]:
        return {agent.id: call_id for agent, call_id in self._archive.sessions.subagents(self._summary)}

    @cached_property
    def _starts(self) -> list[int]:
        return self._archive.messages.turn_starts(self._summary, [*self._calls])

    @cached_property
    def _count(self) -> int:
        return self._archive.messages.extent(self._summary)[1]


def call_position(call_id: str | None, message: Message, messages: Sequence[Message]) -> int | None:
    """Return the position of the call that started a subagent, or else of the message at that time.

    ``message`` is of the subagent, ``messages`` are of the session.
    """
    if call_id is not None:
        for position, own in enumerate(messages):
            if own.tool is not None and own.tool.id == call_id:
                return position
    at = to_milliseconds(message.timestamp)
    times = [
        (own_at, position)
        for position, own in enumerate(messages)
        if (own_at := to_milliseconds(own.timestamp))
    ]
    earlier = [time for time in times if at is not None and time[0] <= at]
    return max(earlier)[1] if earlier else None
