"""Outline each message of a conversation, so that turns can be matched before messages are parsed."""

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

__all__ = ["KnownSteps", "outline_message"]

_MAX_CONTEXT_CHARS = 4_000  # compared with the text of turns
_MIN_TEXT_CHARS = 24  # shorter answers often repeat, so they do not identify a step


class KnownSteps:
    """Set of the steps that the messages contain too."""

    def __init__(self, outlines: Iterable[MessageOutline]) -> None:
        self._call_ids: set[str] = set()
        self._text_hashes: set[int] = set()
        for outline in outlines:
            self._call_ids.update(outline.call_ids)
            self._text_hashes.update(outline.text_hashes)

    def __contains__(self, step: Step) -> bool:
        if step.call is not None:
            return step.call.id in self._call_ids
        text = (step.text or step.thinking or "").strip()
        return len(text) >= _MIN_TEXT_CHARS and hash(text) in self._text_hashes


def outline_message(message: dict[str, Any] | bytes | None, *, is_summary_of_archive: bool) -> MessageOutline:
    """Return the outline of a message; an empty one for the summary of a compaction."""
    if not isinstance(message, dict) or is_summary_of_archive or is_summary(message):
        return MessageOutline("")
    role = str(message.get("role"))
    if role != "user":
        hashes = tuple(hash(text) for text in part_texts(message) if len(text) >= _MIN_TEXT_CHARS)
        return MessageOutline(role, call_ids=call_ids(message), text_hashes=hashes)
    prompt = user_prompt(message)
    if prompt.is_context:
        return MessageOutline(role, at=prompt.at, context=message_text(message)[:_MAX_CONTEXT_CHARS])
    return MessageOutline(role, prompt.text, at=prompt.at)
