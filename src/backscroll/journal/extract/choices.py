"""Decisions that a tool recorded: questions with options, and plans."""

import re
from collections.abc import Iterator
from typing import Any

from backscroll.journal.extract.exchanges import Exchange
from backscroll.journal.extract.points import Point
from backscroll.journal.material import Part
from backscroll.model.code.journal import Quote
from backscroll.model.text import one_line
from backscroll.render.handoff.conversation import question_texts
from backscroll.render.handoff.sentences import information_score, verbatim_sentences

__all__ = ["choice_points"]

_MAX_ANSWER_CHARS = 300
_MAX_PLAN_SENTENCES = 5
_LIST_NUMBER = re.compile(r"^\d{1,2}[.)]\s*")


def choice_points(exchange: Exchange, number: int) -> Iterator[Point]:
    """Yield the questions that the user answered and the plans that the user accepted or rejected."""
    for part in exchange.parts:
        tool = part.message.tool
        if tool is None or not part.message.is_active:
            continue
        if tool.result and any(question_texts(tool.params)):
            yield from _answers(exchange.session_ref, part, number)
        plan = tool.params.get("plan")
        if isinstance(plan, str) and plan.strip():
            is_rejected = tool.decision == "rejected" or tool.status in ("failed", "cancelled")
            yield _plan(exchange.session_ref, part, plan, number, is_rejected=is_rejected)


def _answers(ref: str, part: Part, number: int) -> Iterator[Point]:
    tool = part.message.tool
    assert tool is not None and tool.result is not None
    entries = tool.params.get("questions", [tool.params])
    for entry in entries if isinstance(entries, list) else []:
        question = next(question_texts({"question": entry}), None)
        if question is None:
            continue
        labels = list(_labels(entry))
        answered = tool.result.partition(question)[2] or tool.result
        taken = [label for label in labels if label in answered]
        answer = ", ".join(taken) or one_line(answered.strip(' "=\n'), _MAX_ANSWER_CHARS)
        others = [label for label in labels if label not in taken]
        at = part.message.timestamp
        quotes = (Quote("assistant", question, at, ref, part.position),)
        details = [f"Answer: “{answer}”"]
        if others:
            details.append(f"Not taken: {', '.join(f'“{label}”' for label in others)}")
        yield Point("decisions", "", quotes, 7, at, number, tuple(f"{detail}." for detail in details))


def _labels(entry: Any) -> Iterator[str]:
    options = entry.get("options") if isinstance(entry, dict) else None
    for option in options if isinstance(options, list) else []:
        label = option.get("label", option.get("text")) if isinstance(option, dict) else option
        if isinstance(label, str) and label.strip():
            yield label


def _plan(ref: str, part: Part, plan: str, number: int, *, is_rejected: bool) -> Point:
    said = [_LIST_NUMBER.sub("", sentence) for sentence in verbatim_sentences(plan)]
    best = sorted(said, key=lambda sentence: -information_score(sentence))[:_MAX_PLAN_SENTENCES]
    at = part.message.timestamp
    quotes = tuple(Quote("assistant", s, at, ref, part.position) for s in said if s in best)
    return Point("decisions", "Rejected plan" if is_rejected else "Plan", quotes, 6, at, number)
