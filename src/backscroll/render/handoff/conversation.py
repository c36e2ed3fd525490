"""What was asked, what was decided, and what was found out."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from backscroll.model import Message, ToolCall
from backscroll.render.handoff.sentences import (
    information_score,
    is_constraint,
    is_open_item,
    is_question,
    sentences,
)
from backscroll.render.handoff.types import Candidate, SectionName

__all__ = ["Conversation"]

_TALK = (None, "queued", "task")  # kinds of messages that are what somebody said
_FIRST = 1200  # characters of the first request
_MANY = 8  # sentences; of a longer message only some are decisions
_MOST = 5  # sentences of one answer that are conclusions
_KEPT = 400  # messages of each sort, the last of them; memory is not to grow with the session
_LONGEST = 20_000  # characters of a message that are looked at
_FEW = 3  # words; less says yes or go on


class _Said(Struct):
    text: str
    position: int


class Conversation:
    """Who said what, as far as it was told. ``clean`` takes out of a text what is not to be shown."""

    def __init__(self, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._first: _Said | None = None
        self._asked: deque[_Said] = deque(maxlen=_KEPT)  # after the first
        self._answers: deque[_Said] = deque(maxlen=_KEPT)  # the last of each turn
        self._asides: deque[_Said] = deque(maxlen=_KEPT)  # what was said on the way
        self._answered = False
        self._choices: deque[Candidate] = deque(maxlen=_KEPT)
        self._summary: _Said | None = None
        self._last_call = -1

    def see(self, message: Message, position: int) -> None:
        """Take note of a message that is on the branch which the tool shows."""
        if message.tool is not None:
            self._last_call = position
            self._choose(message.tool, position)
        elif message.kind == "compaction":
            self._summary = _Said(self._clean(message.content), position)
        elif message.role == "user" and message.kind in _TALK and message.content.strip():
            said = _Said(self._clean(message.content)[:_LONGEST], position)
            if self._first is None:
                self._first = said
            else:
                self._asked.append(said)
            self._answered = False
        elif message.role == "assistant" and message.kind in _TALK and message.content.strip():
            if self._answered:
                self._asides.append(self._answers.pop())
            self._answers.append(_Said(self._clean(message.content)[:_LONGEST], position))
            self._answered = True

    def _choose(self, tool: ToolCall, position: int) -> None:
        """Questions that were answered, and plans that were approved or not."""
        if tool.result and any(_questions(tool.params)):
            for question in _questions(tool.params):
                self._choices.append(
                    Candidate("decisions", f"Asked: {self._clean(question)}", 64, position, 300)
                )
            self._choices.append(
                Candidate("decisions", f"Answered: {self._clean(tool.result[:_LONGEST])}", 65, position, 500)
            )
        plan = tool.params.get("plan")
        if isinstance(plan, str) and plan.strip():
            is_refused = tool.decision == "rejected" or tool.status in ("failed", "cancelled")
            word = "Rejected plan" if is_refused else "Approved plan" if tool.result else "Plan"
            self._choices.append(Candidate("decisions", f"{word}: {self._clean(plan)}", 67, position, 700))

    def candidates(self, end: int) -> Iterator[Candidate]:
        """What there is to say of what was said; ``end`` is how many messages there are."""
        yield from self._choices
        yield from self._requests(end)
        if self._summary is not None:
            for sentence in filter(information_score, sentences(self._summary.text)):
                section: SectionName = "open_ends" if is_open_item(sentence) else "decisions"
                weight = 57 if is_open_item(sentence) else 30 + 4 * information_score(sentence)
                yield Candidate(section, f"Summary: {sentence}", weight, self._summary.position, 500)
        yield from self._conclusions(end)
        for said in self._asides:
            for sentence in sentences(said.text):
                if information_score(sentence) >= 2:
                    told = f"Assistant: {sentence}"
                    yield Candidate(
                        "decisions",
                        told,
                        14 + 4 * information_score(sentence) + _late(said, end),
                        said.position,
                    )
        if self._first is not None and not self._answered:
            last = self._asked[-1] if self._asked else self._first
            what = "Not answered" if self._last_call < last.position else "Not answered to the end"
            yield Candidate("open_ends", f"{what}: {last.text}", 89, last.position, 500)

    def _requests(self, end: int) -> Iterator[Candidate]:
        if self._first is None:
            return
        first, later = self._first, self._asked
        yield Candidate("goal", first.text, 100, first.position, _FIRST)
        for sentence in sentences(first.text[_FIRST:]):
            if is_constraint(sentence):
                yield Candidate("decisions", f"You: {sentence}", 45, first.position)
        if later:
            yield Candidate("last_state", f"Last request: {later[-1].text}", 75, later[-1].position, 500)
        for said in later:
            parts = list(sentences(said.text))
            for place, sentence in enumerate(parts):
                late = _late(said, end)
                if is_question(sentence):
                    yield Candidate("goal", f"Then: {sentence}", 42 + late, said.position)
                elif len(parts) <= _MANY or place < 2 or is_constraint(sentence):
                    weight = (62 if is_constraint(sentence) else 52) + late
                    weight -= 34 if len(sentence.split()) < _FEW and not information_score(sentence) else 0
                    yield Candidate("decisions", f"You: {sentence}", weight, said.position)

    def _conclusions(self, end: int) -> Iterator[Candidate]:
        for said in self._answers:
            is_last = said is self._answers[-1]
            late = _late(said, end)
            parts = list(sentences(said.text))
            most = sorted(map(information_score, parts), reverse=True)[:_MOST]
            for sentence in parts:
                told = information_score(sentence)
                if is_open_item(sentence, is_last=is_last) or (is_last and is_question(sentence)):
                    weight = 86.0 if is_last else 33 + 2 * told + late
                    yield Candidate("open_ends", sentence, weight, said.position)
                elif is_last:
                    yield Candidate("last_state", sentence, 46 + 7 * told, said.position)
                elif told and told >= most[-1]:
                    yield Candidate(
                        "decisions", f"Assistant: {sentence}", 34 + 5 * told + late, said.position
                    )


def _late(said: _Said, end: int) -> float:
    """Up to ten more for what was said late in the session."""
    return 10 * said.position / max(1, end)


def _questions(params: dict[str, Any]) -> Iterator[str]:
    asked = params.get("questions", params.get("question"))
    for one in asked if isinstance(asked, list) else [asked]:
        text = one.get("question", one.get("prompt")) if isinstance(one, dict) else one
        if isinstance(text, str) and text.strip():
            yield text
