"""The turns of a session that led to a commit."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from backscroll.archive.archive import Archive
from backscroll.commits.content import SLACK_MS
from backscroll.commits.lines import line_weight
from backscroll.commits.paths import implied_root, normalize
from backscroll.commits.scan import commit_call, message_edits
from backscroll.git.log import Commit
from backscroll.model.commit import CommitTurn
from backscroll.model.message import Message
from backscroll.model.session import SessionSummary

_MIN_LINE_WEIGHT = 0.5  # of all matching lines of a call: one line of 12 characters


def find_turns(
    archive: Archive, summary: SessionSummary, commit: Commit, lines: set[int], paths: Iterable[str]
) -> list[CommitTurn]:
    """Return the turns whose edits or calls led to a commit, in order.

    ``lines`` are the hashes of the lines that the commit adds, ``paths`` the files that it changes. Without
    an edit that adds one of the lines, the turns that changed the files are returned.
    """
    test = _Relevance(commit, lines, paths)
    messages = list(archive.messages.without_usage(summary))
    strong: set[int] = set()
    weak: set[int] = set()
    for position, message in enumerate(messages):
        _add(position, test.strength(message), strong, weak)
    for agent, call_id in archive.sessions.subagents(summary):
        for message in archive.messages.without_usage(agent):
            strength = test.strength(message)
            if strength:
                _add(call_position(call_id, message, messages), strength, strong, weak)
    starts = archive.messages.turn_starts(
        summary, [agent.id for agent, _ in archive.sessions.subagents(summary)]
    )
    return list(_turns(summary, messages, starts, sorted(strong or weak)))


def _add(position: int | None, strength: int, strong: set[int], weak: set[int]) -> None:
    if position is not None and strength:
        (strong if strength > 1 else weak).add(position)


def call_position(call_id: str | None, message: Message, messages: Sequence[Message]) -> int | None:
    """Return the position of the call that started a subagent, or else of the message at that time.

    ``message`` is of the subagent, ``messages`` are of the session.
    """
    if call_id is not None:
        for position, own in enumerate(messages):
            if own.tool is not None and own.tool.id == call_id:
                return position
    at = _milliseconds(message)
    times = [(own_at, position) for position, own in enumerate(messages) if (own_at := _milliseconds(own))]
    earlier = [time for time in times if at is not None and time[0] <= at]
    return max(earlier)[1] if earlier else None


def _milliseconds(message: Message) -> int | None:
    return int(message.timestamp.timestamp() * 1000) if message.timestamp is not None else None


def _turns(
    summary: SessionSummary, messages: list[Message], starts: list[int], positions: list[int]
) -> Iterator[CommitTurn]:
    seen: set[int] = set()
    for position in positions:
        number = bisect_right(starts, position) - 1
        if number in seen:
            continue
        seen.add(number)
        first = starts[number] if number >= 0 else 0
        last = (starts[number + 1] if number + 1 < len(starts) else len(messages)) - 1
        prompt = messages[first].content if number >= 0 else None
        yield CommitTurn(summary.ref, first, last, prompt)


class _Relevance:
    """Compares messages with one commit."""

    def __init__(self, commit: Commit, lines: set[int], paths: Iterable[str]) -> None:
        self._commit = commit
        self._lines = lines
        self._paths = list(paths)
        self._subjects = {" ".join(line.split()).casefold() for line in commit.message.splitlines()}
        self._until = max(commit.authored_at, commit.committed_at) * 1000 + SLACK_MS

    def strength(self, message: Message) -> int:
        """Return 2 for a call that wrote lines of the commit or made it, 1 if it changed its files."""
        tool, at = message.tool, _milliseconds(message)
        if tool is None or message.copied_from is not None or (at is not None and at > self._until):
            return 0
        call = commit_call(tool)
        if call is not None:
            if any(self._commit.sha.startswith(printed) for printed in (*call.hashes, *call.shown)):
                return 2
            if any(" ".join(subject.split()).casefold() in self._subjects for subject in call.subjects):
                return 2
        strength = 0
        for path, lines, _ in message_edits(tool):
            if sum(map(line_weight, self._lines.intersection(lines))) >= _MIN_LINE_WEIGHT:
                return 2
            if path and any(implied_root(normalize(path), tracked) is not None for tracked in self._paths):
                strength = 1
        return strength
