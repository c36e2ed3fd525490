"""The conversation behind a commit: turns of its sessions, with secrets redacted, and exchanges."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.commits.paths import implied_root, normalize
from backscroll.git.diff import FileSize
from backscroll.git.log import Commit, FileChange
from backscroll.highlights.calls import command_run
from backscroll.highlights.sentences import is_question, sentences
from backscroll.model.commit import CommitDetails, OpenSession
from backscroll.model.journal import Quote, Speaker
from backscroll.model.message import TYPED_KINDS, Message
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line
from backscroll.redact import Redactor
from backscroll.render.markdown import code_span
from backscroll.render.tool_calls import describe_call

_MAX_CALL_CHARS = 100
_MAX_SENTENCES = 60  # of one message
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
    context: tuple[Turn, ...] = ()  # of other sessions that were open at the time, session by session


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


def read_context(
    archive: Archive,
    details: CommitDetails,
    sessions: Iterable[tuple[SessionSummary, OpenSession]],
    *,
    since: datetime,
    redactor: Redactor | None,
) -> tuple[Turn, ...]:
    """Return the turns of sessions that were open at the time of a commit."""
    until = details.at.timestamp() + _SLACK_SECONDS
    turns: list[Turn] = []
    for summary, opened in sessions:
        reader = _SessionReader(archive, summary, (), since.timestamp(), until)
        shown = redactor.redact_summary(summary) if redactor is not None else summary
        turns += [
            replace(_redacted(turn, redactor), session=shown)
            for turn in reader.between(opened.first, opened.last)
        ]
    return tuple(turns)


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
        return self._read(self._selected())

    def between(self, first: int, last: int) -> Iterator[Turn]:
        """Yield the turns that contain these messages and those between them."""
        return self._read(
            {number for number, (start, end) in enumerate(self._bounds) if start <= last and first < end}
        )

    def _read(self, selected: Iterable[int]) -> Iterator[Turn]:
        for number in sorted(selected):
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
    run = command_run(message.tool, 0)
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


class Statement(Struct, frozen=True):
    """A message of the user or the assistant, split into sentences."""

    speaker: Speaker
    text: str
    at: datetime | None
    session_ref: str
    position: int
    sentences: tuple[str, ...]
    has_inferred_time: bool

    def quote(self, text: str) -> Quote:
        """Return a part of the message as a quote."""
        return Quote(self.speaker, text, self.at, self.session_ref, self.position, self.has_inferred_time)

    @property
    def is_question(self) -> bool:
        """Whether the message ends with a question."""
        return bool(self.sentences) and is_question(self.sentences[-1])


class Exchange(Struct, frozen=True, kw_only=True):
    """One turn: what the user wrote, what the assistant wrote, and whether files were changed."""

    session_ref: str
    prompt: Statement | None
    answers: tuple[Statement, ...]  # texts of the assistant
    reports: tuple[Statement, ...]  # results of subagents
    abandoned: tuple[tuple[Statement, Statement | None], ...]  # prompts that the user took back, with answers
    has_edits: bool
    edits: tuple[int, ...]  # positions, also of those that the user rejected
    is_first: bool  # of its session
    is_last: bool  # of its session
    follows_rejection: bool  # the user rejected a call or interrupted the assistant before the prompt
    rejected_call: str  # Markdown; empty if unknown
    parts: tuple[Part, ...]

    @property
    def notes(self) -> tuple[Statement, ...]:
        """The texts of the assistant before its last one."""
        return self.answers[:-1]

    @property
    def reply(self) -> Statement | None:
        """The last text of the assistant."""
        return self.answers[-1] if self.answers else None

    @property
    def closing(self) -> tuple[Statement, ...]:
        """The reply, and notes after the last edit: a report may precede the commit."""
        after = [note for note in self.notes if self.edits and note.position > self.edits[-1]]
        return (*after, *self.answers[-1:])


def exchanges(turns: Sequence[Turn]) -> list[Exchange]:
    """Return the turns as exchanges, in the same order."""
    refs = [turn.session.ref for turn in turns]
    found: list[Exchange] = []
    for index, turn in enumerate(turns):
        before = turns[index - 1] if index and refs[index - 1] == turn.session.ref else None
        spoken = [part for part in turn.parts if is_spoken(part.message) and part.message.is_active]
        prompts = [part for part in spoken if part.message.role == "user"]
        answers = [_statement(turn, part) for part in spoken if part.message.role == "assistant"]
        found.append(
            Exchange(
                session_ref=turn.session.ref,
                prompt=_statement(turn, prompts[0]) if prompts else None,
                answers=tuple(answers),
                reports=tuple(_reports(turn)),
                abandoned=tuple(_abandoned(before)) if before is not None else (),
                has_edits=turn.has_edits,
                edits=tuple(p.position for p in turn.parts if p.message.tool and p.message.tool.edits),
                is_first=not any(
                    one.session_ref == turn.session.ref and one.prompt is not None for one in found
                ),
                is_last=turn.session.ref not in refs[index + 1 :],
                follows_rejection=before is not None and _ends_with_rejection(before),
                rejected_call=_rejected_call(before) if before is not None else "",
                parts=turn.parts,
            )
        )
    return found


def joined(statement: Statement, chosen: Sequence[str], max_chars: int) -> Iterator[Quote]:
    """Yield sentences of a message as quotes. Sentences that follow each other become one quote."""
    runs: list[list[str]] = []
    previous = -2
    for index, sentence in enumerate(statement.sentences):
        if sentence not in chosen:
            continue
        if index == previous + 1 and len(" ".join([*runs[-1], sentence])) <= max_chars:
            runs[-1].append(sentence)
        else:
            runs.append([sentence])
        previous = index
    for run in runs:
        yield statement.quote(_span(statement.text, run[0], run[-1]) or " ".join(run))


def _span(text: str, first: str, last: str) -> str | None:
    """Return the text from one sentence to another, if they are in the same paragraph."""
    start = text.find(first)
    end = text.find(last, start)
    if start < 0 or end < 0:
        return None
    found = text[start : end + len(last)]
    return found if "\n\n" not in found else None


def _statement(turn: Turn, part: Part) -> Statement:
    message = part.message
    text = message.tool.result or "" if message.tool is not None else message.content
    speaker: Speaker = "user" if message.role == "user" else "assistant"
    said = tuple(sentences(text))[:_MAX_SENTENCES]
    inferred = message.has_inferred_time
    return Statement(speaker, text, message.timestamp, turn.session.ref, part.position, said, inferred)


def _reports(turn: Turn) -> Iterator[Statement]:
    for part in turn.parts:
        tool = part.message.tool
        if part.is_report and tool is not None and tool.status == "completed" and tool.result:
            yield _statement(turn, part)


def _abandoned(turn: Turn) -> Iterator[tuple[Statement, Statement | None]]:
    """Yield the prompts at the end of a turn that are on no branch that the tool shows."""
    parts = [part for part in turn.parts if is_spoken(part.message) and not part.message.is_active]
    for index, part in enumerate(parts):
        if part.message.role == "user":
            answer = next((later for later in parts[index + 1 :] if later.message.role == "assistant"), None)
            yield _statement(turn, part), _statement(turn, answer) if answer is not None else None


def _rejected_call(turn: Turn) -> str:
    """Return the last call of a turn that the user rejected or interrupted."""
    for part in reversed(turn.parts):
        tool = part.message.tool
        if tool is not None:
            if tool.edits:
                return f"an edit of {code_span(tool.edits[-1].path.rpartition('/')[2])}"
            return code_span(one_line(describe_call(tool), _MAX_CALL_CHARS))
        if is_spoken(part.message):
            break
    return ""


def _ends_with_rejection(turn: Turn) -> bool:
    for part in reversed(turn.parts):
        message = part.message
        if message.kind == "interruption":
            return True
        if message.tool is not None:
            return message.tool.decision == "rejected"
        if is_spoken(message) and message.role == "assistant":
            return False
    return False
