"""Summary of a session for another assistant.

Extracted by rules: every statement is from the session. The messages are read once. They yield candidates
with a weight, and those with the highest weights fill the token budget.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from backscroll.highlights.calls import (
    CallLog,
    CommandRun,
    FileChange,
    answered_questions,
    is_fixed_by,
    proposed_plan,
)
from backscroll.highlights.sentences import (
    information_score,
    is_constraint,
    is_open_item,
    is_question,
    plain_sentences,
)
from backscroll.model.message import TYPED_KINDS, Message, ToolCall
from backscroll.model.session import SessionSummary
from backscroll.model.text import one_line, pluralize
from backscroll.render.handoff import (
    SECTION_TITLES,
    Handoff,
    Point,
    Section,
    SectionName,
    handoff_text,
    header_lines,
)
from backscroll.render.token_estimate import CHARS_PER_TOKEN

_MIN_POINT_CHARS = 120  # a point is not truncated below this
_POINT_MARKUP_CHARS = 4
_HEADING_MARKUP_CHARS = 6
_LABEL = re.compile(r"^(?:User|Assistant|Later|Summary|Unanswered|Answer incomplete): ")
_SPOKEN_KINDS = (*TYPED_KINDS, "task")  # messages written by the user or the assistant
_MAX_GOAL_CHARS = 1200  # of the first request
_SHORT_MESSAGE_SENTENCES = 8  # all are decisions; of a longer message only some
_MAX_CONCLUSIONS = 5  # sentences of one answer
_MAX_MESSAGES = 400  # of each kind; the last ones are kept, to bound memory
_MAX_MESSAGE_CHARS = 20_000
_MIN_DECISION_WORDS = 3  # fewer words are "yes" or "go on"
_RECENT_COMMANDS = 4
_MAX_LISTED_FILES = 8


class _Candidate(Struct, frozen=True):
    """A point that may be included, with its weight. Higher weights are selected first."""

    section: SectionName
    text: str
    weight: float
    position: int  # of its message; orders the points of a section
    max_chars: int = 400


def build_handoff(
    summary: SessionSummary, messages: Iterable[Message], *, tokens: int, clean: Callable[[str], str] = str
) -> Handoff:
    """Summarize a session within an estimated number of tokens.

    `clean` is applied to every text before any of it is truncated, for example to redact secrets.
    """
    own_id = summary.id if summary.parent_ref is not None else None  # set in all messages of a subagent
    conversation, calls = _Conversation(clean), CallLog(summary.workspace_path)
    end, is_interrupted = 0, False
    for position, message in enumerate(messages):
        end = position + 1
        if not message.is_active or message.agent_id not in (None, own_id):
            continue
        if message.is_sidechain and not own_id:
            continue
        if message.role == "system" and message.kind not in ("compaction", "interruption"):
            continue
        is_interrupted = message.kind == "interruption"
        conversation.add(message, position)
        if message.tool is not None:
            calls.add(message.tool, position)
    candidates = list(conversation.candidates(end))
    for point in _call_points(calls):
        candidates.append(replace(point, text=clean(point.text)))
    if is_interrupted:
        candidates.append(_Candidate("open_ends", "The session ends with an interruption", 90, end))
    budget_chars = tokens * CHARS_PER_TOKEN - sum(len(line) + 1 for line in header_lines(summary))
    handoff = Handoff(summary, _select(candidates, budget_chars), tokens, 0)
    return replace(handoff, tokens=-(-len(handoff_text(handoff)) // CHARS_PER_TOKEN))


def _select(candidates: Iterable[_Candidate], budget_chars: int) -> tuple[Section, ...]:
    """Return the points with the highest weight that fit into the budget. Duplicates are skipped."""
    chosen: dict[SectionName, list[tuple[int, int, Point]]] = {name: [] for name in SECTION_TITLES}
    left_out = dict.fromkeys(SECTION_TITLES, 0)
    seen: set[str] = set()
    numbered = enumerate(candidates)
    ordered = sorted(numbered, key=lambda entry: (-entry[1].weight, -entry[1].position, entry[0]))
    for index, candidate in ordered:
        normalized = " ".join(_LABEL.sub("", candidate.text).lower().split())
        if normalized in seen:
            continue
        seen.add(normalized)
        heading = SECTION_TITLES[candidate.section]
        heading_chars = 0 if chosen[candidate.section] else len(heading) + _HEADING_MARKUP_CHARS
        available = budget_chars - heading_chars - _POINT_MARKUP_CHARS
        text = one_line(candidate.text, candidate.max_chars)
        if len(text) > available:
            if available < _MIN_POINT_CHARS:
                left_out[candidate.section] += 1
                continue
            text = one_line(candidate.text, available)
        budget_chars -= len(text) + heading_chars + _POINT_MARKUP_CHARS
        point = Point(text, candidate.position)
        chosen[candidate.section].append((candidate.position, index, point))
    sections = []
    for name, entries in chosen.items():
        points = tuple(point for *_, point in sorted(entries, key=lambda entry: entry[:2]))
        if points or left_out[name]:
            sections.append(Section(name, points, left_out[name]))
    return tuple(sections)


class _Statement(Struct):
    text: str
    position: int


class _Conversation:
    """Messages added so far. `clean` is applied to every text, for example to redact secrets."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._first_request: _Statement | None = None
        self._requests: deque[_Statement] = deque(maxlen=_MAX_MESSAGES)  # after the first
        self._answers: deque[_Statement] = deque(maxlen=_MAX_MESSAGES)  # the last message of each turn
        self._interim: deque[_Statement] = deque(maxlen=_MAX_MESSAGES)  # earlier messages of the turns
        self._is_answered = False
        self._choices: deque[_Candidate] = deque(maxlen=_MAX_MESSAGES)
        self._summary: _Statement | None = None
        self._last_call_position = -1

    def add(self, message: Message, position: int) -> None:
        """Add a message of the active branch."""
        if message.tool is not None:
            self._last_call_position = position
            self._add_choices(message.tool, position)
        elif message.kind == "compaction":
            self._summary = _Statement(self._clean(message.content), position)
        elif message.role == "user" and message.kind in _SPOKEN_KINDS and message.content.strip():
            statement = _Statement(self._clean(message.content)[:_MAX_MESSAGE_CHARS], position)
            if self._first_request is None:
                self._first_request = statement
            else:
                self._requests.append(statement)
            self._is_answered = False
        elif message.role == "assistant" and message.kind in _SPOKEN_KINDS and message.content.strip():
            if self._is_answered:
                self._interim.append(self._answers.pop())
            self._answers.append(_Statement(self._clean(message.content)[:_MAX_MESSAGE_CHARS], position))
            self._is_answered = True

    def _add_choices(self, tool: ToolCall, position: int) -> None:
        """Add questions with their answers, and plans with the user's decision."""
        questions = [f"Asked: {self._clean(question.text)}" for question in answered_questions(tool)]
        self._choices.extend(_Candidate("decisions", text, 64, position, 300) for text in questions)
        if questions and tool.result:
            answer = self._clean(tool.result[:_MAX_MESSAGE_CHARS])
            self._choices.append(_Candidate("decisions", f"Answered: {answer}", 65, position, 500))
        plan = proposed_plan(tool)
        if plan is not None:
            label = "Rejected plan" if plan.is_rejected else "Approved plan" if tool.result else "Plan"
            text = f"{label}: {self._clean(plan.text)}"
            self._choices.append(_Candidate("decisions", text, 67, position, 700))

    def candidates(self, end: int) -> Iterator[_Candidate]:
        """Yield points about the conversation. `end` is the number of messages."""
        yield from self._choices
        yield from self._request_points(end)
        if self._summary is not None:
            for sentence in filter(information_score, plain_sentences(self._summary.text)):
                section: SectionName = "open_ends" if is_open_item(sentence) else "decisions"
                weight = 57 if is_open_item(sentence) else 30 + 4 * information_score(sentence)
                yield _Candidate(section, f"Summary: {sentence}", weight, self._summary.position, 500)
        yield from self._answer_points(end)
        for statement in self._interim:
            for sentence in plain_sentences(statement.text):
                if information_score(sentence) >= 2:
                    bonus = _recency(statement, end)
                    score = 14 + 4 * information_score(sentence) + bonus
                    yield _Candidate("decisions", f"Assistant: {sentence}", score, statement.position)
        if self._first_request is not None and not self._is_answered:
            last = self._requests[-1] if self._requests else self._first_request
            label = "Unanswered" if self._last_call_position < last.position else "Answer incomplete"
            yield _Candidate("open_ends", f"{label}: {last.text}", 89, last.position, 500)

    def _request_points(self, end: int) -> Iterator[_Candidate]:
        if self._first_request is None:
            return
        first, later = self._first_request, self._requests
        yield _Candidate("goal", first.text, 100, first.position, _MAX_GOAL_CHARS)
        for sentence in plain_sentences(first.text[_MAX_GOAL_CHARS:]):
            if is_constraint(sentence):
                yield _Candidate("decisions", f"User: {sentence}", 45, first.position)
        if later:
            yield _Candidate("last_state", f"Last request: {later[-1].text}", 75, later[-1].position, 500)
        for statement in later:
            parts = list(plain_sentences(statement.text))
            for index, sentence in enumerate(parts):
                recency = _recency(statement, end)
                if is_question(sentence):
                    yield _Candidate("goal", f"Later: {sentence}", 42 + recency, statement.position)
                elif len(parts) <= _SHORT_MESSAGE_SENTENCES or index < 2 or is_constraint(sentence):
                    weight = (62 if is_constraint(sentence) else 52) + recency
                    is_short = len(sentence.split()) < _MIN_DECISION_WORDS
                    weight -= 34 if is_short and not information_score(sentence) else 0
                    yield _Candidate("decisions", f"User: {sentence}", weight, statement.position)

    def _answer_points(self, end: int) -> Iterator[_Candidate]:
        for statement in self._answers:
            is_last = statement is self._answers[-1]
            recency = _recency(statement, end)
            parts = list(plain_sentences(statement.text))
            best = sorted(map(information_score, parts), reverse=True)[:_MAX_CONCLUSIONS]
            for sentence in parts:
                score = information_score(sentence)
                if is_open_item(sentence, is_last=is_last) or (is_last and is_question(sentence)):
                    weight = 86.0 if is_last else 33 + 2 * score + recency
                    yield _Candidate("open_ends", sentence, weight, statement.position)
                elif is_last:
                    yield _Candidate("last_state", sentence, 46 + 7 * score, statement.position)
                elif score and score >= best[-1]:
                    yield _Candidate(
                        "decisions", f"Assistant: {sentence}", 34 + 5 * score + recency, statement.position
                    )


def _recency(statement: _Statement, end: int) -> float:
    """Return a bonus of up to 10 for statements late in the session."""
    return 10 * statement.position / max(1, end)


def _call_points(calls: CallLog) -> Iterator[_Candidate]:
    """Yield points about files, commands, comments and tasks."""
    for file in calls.files:
        yield from _file_points(file)
    yield from _command_points(calls.runs)
    commit = calls.last_commit
    if commit is not None:
        yield _Candidate("last_state", f"Last commit: {commit.subject}", 62, commit.position)
    changed = calls.uncommitted
    if changed:
        names = ", ".join(file.path for file in changed[:_MAX_LISTED_FILES])
        more = f" and {len(changed) - _MAX_LISTED_FILES} more" if len(changed) > _MAX_LISTED_FILES else ""
        since = "since the last commit" if commit is not None else "in this session"
        last = max(file.position for file in changed)
        yield _Candidate("open_ends", f"Uncommitted changes {since}: {names}{more}", 70, last)
    for path, text, position in calls.comments:
        weight = 26 + 4 * information_score(text)
        yield _Candidate("decisions", f"Comment in {path}: {text}", weight, position)
    for text, status, position in calls.tasks.unfinished():
        label = "In progress" if status == "in_progress" else "To do"
        yield _Candidate("open_ends", f"{label}: {text}", 87, position)


def _file_points(file: FileChange) -> Iterator[_Candidate]:
    if file.kind == "read":
        state = "not changed" if file.rejected else "read"
        yield _Candidate("files", f"{file.path}: {state}", 12, file.position)
    else:
        times = f", {pluralize(file.edits, 'edit')}" if file.edits > 1 else ""
        changed = f" (+{file.added:,} −{file.removed:,}{times})" if file.edits else ""
        weight = 55 + min(5.0, (file.added + file.removed) / 40)
        yield _Candidate("files", f"{file.path}: {file.kind}{changed}", weight, file.position)
    if file.rejected:
        text = f"Rejected: {pluralize(file.rejected, 'edit')} of {file.path}"
        yield _Candidate("decisions", text, 66, file.position)


def _command_points(runs: list[CommandRun]) -> Iterator[_Candidate]:
    for index, run in enumerate(runs):
        is_recent = index >= len(runs) - _RECENT_COMMANDS
        if run.status == "pending":
            if is_recent:
                yield _Candidate("open_ends", f"Still running: {_first_line(run)}", 88, run.position)
        elif run.is_failed:
            is_fixed = any(is_fixed_by(run, later) for later in runs[index + 1 :])
            weight = 22 if is_fixed else 72 if run.is_check else 58 if is_recent else 16
            label = "failed at first" if is_fixed else "failed"
            yield _Candidate("commands", f"{label}: {_with_outcome(run)}", weight, run.position)
        elif run.is_check:
            weight = 50 if is_recent else 24
            yield _Candidate("commands", f"passed: {_with_outcome(run)}", weight, run.position)
        elif is_recent:
            yield _Candidate("commands", f"ran: {_with_outcome(run)}", 20, run.position)


def _first_line(run: CommandRun) -> str:
    lines = run.command.strip().splitlines()
    return f"`{lines[0] if lines else ''}`" + (" …" if len(lines) > 1 else "")


def _with_outcome(run: CommandRun) -> str:
    """Return the first line of a command with its exit code and the last line of output."""
    exit_code = f" (exit {run.exit})" if run.exit else ""
    return f"{_first_line(run)}{exit_code}" + (f": {run.last_line}" if run.last_line else "")
