"""Requests, decisions and conclusions from the messages of a session."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from backscroll.model import Message, ToolCall
from backscroll.model.message import TYPED_KINDS
from backscroll.render.handoff.sentences import (
    information_score,
    is_constraint,
    is_open_item,
    is_question,
    sentences,
)
from backscroll.render.handoff.types import Candidate, SectionName

__all__ = ["Conversation", "question_texts"]

_SPOKEN_KINDS = (*TYPED_KINDS, "task")  # messages written by the user or the assistant
_MAX_GOAL_CHARS = 1200  # of the first request
_SHORT_MESSAGE_SENTENCES = 8  # all are decisions; of a longer message only some
_MAX_CONCLUSIONS = 5  # sentences of one answer
_MAX_MESSAGES = 400  # of each kind; the last ones are kept, to bound memory
_MAX_MESSAGE_CHARS = 20_000
_MIN_DECISION_WORDS = 3  # fewer words are "yes" or "go on"


class _Statement(Struct):
    text: str
    position: int


class Conversation:
    """Messages added so far. `clean` is applied to every text, for example to redact secrets."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._first_request: _Statement | None = None
        self._requests: deque[_Statement] = deque(maxlen=_MAX_MESSAGES)  # after the first
        self._answers: deque[_Statement] = deque(maxlen=_MAX_MESSAGES)  # the last message of each turn
        self._interim: deque[_Statement] = deque(maxlen=_MAX_MESSAGES)  # earlier messages of the turns
        self._is_answered = False
        self._choices: deque[Candidate] = deque(maxlen=_MAX_MESSAGES)
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
        if tool.result and any(question_texts(tool.params)):
            for question in question_texts(tool.params):
                self._choices.append(
                    Candidate("decisions", f"Asked: {self._clean(question)}", 64, position, 300)
                )
            answer = self._clean(tool.result[:_MAX_MESSAGE_CHARS])
            self._choices.append(Candidate("decisions", f"Answered: {answer}", 65, position, 500))
        plan = tool.params.get("plan")
        if isinstance(plan, str) and plan.strip():
            is_rejected = tool.decision == "rejected" or tool.status in ("failed", "cancelled")
            label = "Rejected plan" if is_rejected else "Approved plan" if tool.result else "Plan"
            self._choices.append(Candidate("decisions", f"{label}: {self._clean(plan)}", 67, position, 700))

    def candidates(self, end: int) -> Iterator[Candidate]:
        """Yield points about the conversation. `end` is the number of messages."""
        yield from self._choices
        yield from self._request_points(end)
        if self._summary is not None:
            for sentence in filter(information_score, sentences(self._summary.text)):
                section: SectionName = "open_ends" if is_open_item(sentence) else "decisions"
                weight = 57 if is_open_item(sentence) else 30 + 4 * information_score(sentence)
                yield Candidate(section, f"Summary: {sentence}", weight, self._summary.position, 500)
        yield from self._answer_points(end)
        for statement in self._interim:
            for sentence in sentences(statement.text):
                if information_score(sentence) >= 2:
                    bonus = _recency(statement, end)
                    score = 14 + 4 * information_score(sentence) + bonus
                    yield Candidate("decisions", f"Assistant: {sentence}", score, statement.position)
        if self._first_request is not None and not self._is_answered:
            last = self._requests[-1] if self._requests else self._first_request
            label = "Unanswered" if self._last_call_position < last.position else "Answer incomplete"
            yield Candidate("open_ends", f"{label}: {last.text}", 89, last.position, 500)

    def _request_points(self, end: int) -> Iterator[Candidate]:
        if self._first_request is None:
            return
        first, later = self._first_request, self._requests
        yield Candidate("goal", first.text, 100, first.position, _MAX_GOAL_CHARS)
        for sentence in sentences(first.text[_MAX_GOAL_CHARS:]):
            if is_constraint(sentence):
                yield Candidate("decisions", f"User: {sentence}", 45, first.position)
        if later:
            yield Candidate("last_state", f"Last request: {later[-1].text}", 75, later[-1].position, 500)
        for statement in later:
            parts = list(sentences(statement.text))
            for index, sentence in enumerate(parts):
                recency = _recency(statement, end)
                if is_question(sentence):
                    yield Candidate("goal", f"Later: {sentence}", 42 + recency, statement.position)
                elif len(parts) <= _SHORT_MESSAGE_SENTENCES or index < 2 or is_constraint(sentence):
                    weight = (62 if is_constraint(sentence) else 52) + recency
                    is_short = len(sentence.split()) < _MIN_DECISION_WORDS
                    weight -= 34 if is_short and not information_score(sentence) else 0
                    yield Candidate("decisions", f"User: {sentence}", weight, statement.position)

    def _answer_points(self, end: int) -> Iterator[Candidate]:
        for statement in self._answers:
            is_last = statement is self._answers[-1]
            recency = _recency(statement, end)
            parts = list(sentences(statement.text))
            best = sorted(map(information_score, parts), reverse=True)[:_MAX_CONCLUSIONS]
            for sentence in parts:
                score = information_score(sentence)
                if is_open_item(sentence, is_last=is_last) or (is_last and is_question(sentence)):
                    weight = 86.0 if is_last else 33 + 2 * score + recency
                    yield Candidate("open_ends", sentence, weight, statement.position)
                elif is_last:
                    yield Candidate("last_state", sentence, 46 + 7 * score, statement.position)
                elif score and score >= best[-1]:
                    yield Candidate(
                        "decisions", f"Assistant: {sentence}", 34 + 5 * score + recency, statement.position
                    )


def _recency(statement: _Statement, end: int) -> float:
    """Return a bonus of up to 10 for statements late in the session."""
    return 10 * statement.position / max(1, end)


def question_texts(params: dict[str, Any]) -> Iterator[str]:
    """Yield the questions of a call that asks the user."""
    questions = params.get("questions", params.get("question"))
    for question in questions if isinstance(questions, list) else [questions]:
        if isinstance(question, dict):
            question = question.get("question", question.get("prompt"))
        if isinstance(question, str) and question.strip():
            yield question
