"""A first look through a conversation: just enough to lay its turns beside it."""

from collections.abc import Iterable
from typing import Any

from backscroll.sources.cursor_graph.message_parts import calls_in, is_summary, prompt_of, text_of, texts_in
from backscroll.sources.cursor_graph.timeline import Seen
from backscroll.sources.cursor_graph.turns import Step

__all__ = ["ToldAlready", "glance"]

_GLANCE = 4_000  # characters of context that are compared with what turns say
_TELLING = 24  # characters that make it unlikely for two answers to be the same


class ToldAlready:
    """The steps of turns that the messages hold too."""

    def __init__(self, seen: Iterable[Seen]) -> None:
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
        return len(text) >= _TELLING and hash(text) in self._texts


def glance(message: dict[str, Any] | bytes | None, *, is_archived: bool) -> Seen:
    """What is remembered of a message; nothing of a summary, which nobody said."""
    if not isinstance(message, dict) or is_archived or is_summary(message):
        return Seen("")
    role = str(message.get("role"))
    if role != "user":
        texts = tuple(hash(text) for text in texts_in(message) if len(text) >= _TELLING)
        return Seen(role, calls=calls_in(message), texts=texts)
    prompt = prompt_of(message)
    if prompt.is_context:
        return Seen(role, at=prompt.at, context=text_of(message)[:_GLANCE])
    return Seen(role, prompt.text, at=prompt.at)
