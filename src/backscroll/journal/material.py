"""The messages of sessions that belong to a commit, with secrets redacted."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.commits.paths import implied_root, normalize
from backscroll.git import Commit, FileChange, FileSize
from backscroll.model import Message, SessionSummary
from backscroll.model.code.commit import CommitDetails
from backscroll.model.message import TYPED_KINDS
from backscroll.redact.redactor import Redactor
from backscroll.render.handoff.commands import CommandLog

__all__ = ["Material", "Part", "Turn", "is_spoken", "read_turns"]

_SLACK_SECONDS = 120  # between the clocks of a tool and of git
_FIRST_COMMIT_SECONDS = 24 * 3600
_MAX_MESSAGE_CHARS = 40_000  # of text or output; the rest of a longer one is not read


class Part(Struct, frozen=True):
    """A message of a turn."""

    position: int  # in its session, from 0
    message: Message
    is_report: bool = False  # the result of a subagent


class Turn(Struct, frozen=True):
    """A user message and what follows it, as far as it belongs to the commit."""

    session: SessionSummary
    parts: tuple[Part, ...]
    has_edits: bool
    is_start: bool = False  # of its session, without what a resume or fork copied


class Material(Struct, frozen=True, kw_only=True):
    """Everything that an entry is written from."""

    commit: Commit
    patch_id: str
    branch: str | None
    sizes: tuple[FileSize, ...]  # without the files of the journal
    changes: tuple[FileChange, ...]
    sessions: tuple[SessionSummary, ...]  # best first
    turns: tuple[Turn, ...]  # by time


def is_spoken(message: Message) -> bool:
    """Return whether a message is text that the user or the assistant wrote."""
    return (
        message.role in ("user", "assistant")
        and message.kind in TYPED_KINDS
        and message.tool is None
        and bool(message.content.strip())
    )


def read_turns(
    archive: Archive,
    details: CommitDetails,
    sessions: Iterable[SessionSummary],
    *,
    parent_at: int | None,
    redactor: Redactor | None,
) -> tuple[Turn, ...]:
    """Return the turns that led to a commit, by time.

    These are the turns between the parent commit and this one, the turns whose edits the commit contains, and
    the discussion before them. ``parent_at`` is the time of the parent commit in seconds since 1970.
    """
    until = details.at.timestamp() + _SLACK_SECONDS
    since = parent_at if parent_at is not None else until - _FIRST_COMMIT_SECONDS
    turns: list[Turn] = []
    for summary in sessions:
        found = [(turn.first, turn.last) for turn in details.turns if turn.session_ref == summary.ref]
        reader = _SessionReader(archive, summary, found, since, until)
        turns += [_redacted(turn, redactor) for turn in reader.turns()]
    return tuple(sorted(turns, key=lambda turn: (_start(turn) is None, _start(turn) or details.at)))


def _start(turn: Turn) -> datetime | None:
    return next((part.message.timestamp for part in turn.parts if part.message.timestamp), None)


class _SessionReader:
    """Selects the turns of one session."""

    def __init__(
        self,
        archive: Archive,
        summary: SessionSummary,
        found: Sequence[tuple[int, int]],
        since: float,
        until: float,
    ) -> None:
        self._summary, self._since, self._until = summary, since, until
        self._messages = list(archive.messages.without_usage(summary))
        agents = archive.sessions.subagents(summary)
        self._agent_ids = {agent.id for agent, _ in agents}
        self._agent_calls = {call for _, call in agents if call is not None}
        starts = archive.messages.turn_starts(summary, self._agent_ids)
        self._bounds = list(zip(starts, [*starts[1:], len(self._messages)], strict=True))
        if starts and starts[0] > 0:
            self._bounds.insert(0, (0, starts[0]))
        own = [number for number, (first, _) in enumerate(self._bounds) if self._is_own_prompt(first)]
        self._first = own[0] if own else 0
        self._found = {bisect_right([first for first, _ in self._bounds], first) - 1 for first, _ in found}
        self._paths = {
            normalize(edit.path)
            for number in self._found
            for message in self._messages[slice(*self._bounds[number])]
            if message.tool is not None
            for edit in message.tool.edits
        }

    def _is_own_prompt(self, position: int) -> bool:
        message = self._messages[position]
        return message.role == "user" and message.copied_from is None

    def turns(self) -> Iterator[Turn]:
        for number in sorted(self._selected()):
            parts = tuple(self._parts(number))
            if parts:
                has_edits = any(_has_edits(part.message) for part in parts)
                yield Turn(self._summary, parts, has_edits, number == self._first)

    def _selected(self) -> set[int]:
        selected = set(self._found)
        for number in range(len(self._bounds)):
            at = self._time(number)
            if at is not None and self._since < at <= self._until and not self._is_unrelated(number):
                selected.add(number)
        for number in sorted(self._found):  # the discussion before the first edit
            if self._is_continued(number):
                continue
            before = number - 1
            while before >= 0 and before not in selected and not self._ends_other_work(before):
                selected.add(before)
                before -= 1
        return selected

    def _time(self, number: int) -> float | None:
        times = (message.timestamp for message in self._messages[slice(*self._bounds[number])])
        return next((at.timestamp() for at in times if at is not None), None)

    def _is_continued(self, number: int) -> bool:
        """Return whether a turn led to an earlier commit first. The discussion before it belongs to that."""
        times = [_seconds(message) for message in self._messages[slice(*self._bounds[number])]]
        known = [at for at in times if at is not None]
        return bool(known) and known[0] <= self._since < known[-1]

    def _is_unrelated(self, number: int) -> bool:
        """Return whether a turn changed files, and none that the turns of the commit changed."""
        edited = {
            normalize(edit.path)
            for message in self._messages[slice(*self._bounds[number])]
            if message.tool is not None
            for edit in message.tool.edits
        }
        if not edited or edited & self._paths:
            return False
        return not any(implied_root(path, known) is not None for path in edited for known in self._paths)

    def _ends_other_work(self, number: int) -> bool:
        messages = self._messages[slice(*self._bounds[number])]
        return any(_has_edits(message) or _is_commit(message) for message in messages)

    def _parts(self, number: int) -> Iterator[Part]:
        first, end = self._bounds[number]
        span = range(first, end)
        times = {position: _seconds(self._messages[position]) for position in span}
        is_split = any(at is not None and self._since < at <= self._until for at in times.values())
        is_over = False
        for position in span:
            message, at = self._messages[position], times[position]
            if message.copied_from is not None or message.agent_id in self._agent_ids:
                continue
            if message.is_sidechain or message.kind in ("task", "report"):
                continue
            is_prompt = position == first and message.role == "user"
            if is_split and not is_prompt and at is not None and at <= self._since:
                continue  # led to an earlier commit
            if at is not None and at > self._until:
                # After the commit, only the closing words of the same turn belong to it.
                is_over = is_over or _has_edits(message) or _is_commit(message)
                if is_over or not is_spoken(message) or message.role != "assistant":
                    continue
            is_report = message.tool is not None and message.tool.id in self._agent_calls
            yield Part(position, message, is_report)


def _seconds(message: Message) -> float | None:
    return message.timestamp.timestamp() if message.timestamp is not None else None


def _has_edits(message: Message) -> bool:
    tool = message.tool
    return tool is not None and bool(tool.edits) and tool.decision != "rejected" and not tool.is_error


def _is_commit(message: Message) -> bool:
    if message.tool is None:
        return False
    run = CommandLog().add(message.tool, 0)
    return run is not None and run.subject is not None


def _redacted(turn: Turn, redactor: Redactor | None) -> Turn:
    """Return a turn with long texts cut and secrets replaced."""
    parts = []
    for part in turn.parts:
        message = _shortened(part.message)
        if redactor is not None:
            message = redactor.redact_message(message, turn.session.ref, part.position)
        parts.append(Part(part.position, message, part.is_report))
    return Turn(turn.session, tuple(parts), turn.has_edits, turn.is_start)


def _shortened(message: Message) -> Message:
    tool = message.tool
    if tool is not None and tool.result and len(tool.result) > _MAX_MESSAGE_CHARS:
        # The outcome of a command is at the end of its output.
        tool = replace(tool, result=tool.result[-_MAX_MESSAGE_CHARS:])
    if tool is message.tool and len(message.content) <= _MAX_MESSAGE_CHARS:
        return message
    return replace(message, content=message.content[:_MAX_MESSAGE_CHARS], tool=tool)
