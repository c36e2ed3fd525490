"""A first look through a conversation: just enough to lay its turns beside it."""

from collections.abc import Iterable
from typing import Any

from backscroll.sources.cursor_graph.message_parts import (
    call_ids,
    is_summary,
    message_text,
    part_texts,
    user_prompt,
)
from backscroll.sources.cursor_graph.timeline import MessageOutline
from backscroll.sources.cursor_graph.turns import Step

__all__ = ["KnownSteps", "scan_message"]

_MAX_CONTEXT_CHARS = 4_000  # characters of context that are compared with what turns say
_MIN_TEXT_CHARS = 24  # characters that make it unlikely for two answers to be the same


class KnownSteps:
    """The steps of turns that the messages hold too."""

    def __init__(self, seen: Iterable[MessageOutline]) -> None:
        self._calls: set[str] = set()
        self._texts: set[int] = set()
        for each in seen:
            self._calls.update(each.calls)
            self._texts.update(each.texts)

    def __contains__(self, step: Step) -> bool:
        if step.call is not None:
            return step.call.id in self._calls
        text = (step.text or step.thinking or "").strip()
        # A short answer says nothing: there are many of them.
        return len(text) >= _MIN_TEXT_CHARS and hash(text) in self._texts


def scan_message(message: dict[str, Any] | bytes | None, *, is_archived: bool) -> MessageOutline:
    """What is remembered of a message; nothing of a summary, which nobody said."""
    if not isinstance(message, dict) or is_archived or is_summary(message):
        return MessageOutline("")
    role = str(message.get("role"))
    if role != "user":
        texts = tuple(hash(text) for text in part_texts(message) if len(text) >= _MIN_TEXT_CHARS)
        return MessageOutline(role, calls=call_ids(message), texts=texts)
    prompt = user_prompt(message)
    if prompt.is_context:
        return MessageOutline(role, at=prompt.at, context=message_text(message)[:_MAX_CONTEXT_CHARS])
    return MessageOutline(role, prompt.text, at=prompt.at)
