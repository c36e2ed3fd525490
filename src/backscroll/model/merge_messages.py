"""Several accounts of one session as one: each message once, and in one order."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from operator import itemgetter

from msgspec.structs import replace

from backscroll.model.message import Message

__all__ = ["merge_messages", "message_texts"]


def merge_messages(told: Sequence[Message], others: Iterable[Message]) -> Sequence[Message]:
    """What two accounts tell, the first in its own order.

    What only the other has comes where its time belongs. Where both have a message and the other says what
    the first does not, that is told as well, and is not active.
    """
    if not told:
        return list(others)
    known: dict[str, list[Message]] = {}
    for message in told:
        known.setdefault(message.id, []).append(message)
    more: list[tuple[float, Message]] = []
    for moment, message in _with_moments(others):
        first = known.get(message.id)
        if first is None:
            more.append((moment, message))
        elif not all(any(_has(one, text) for one in first) for text in message_texts(message)):
            more.append((moment, replace(message, is_active=False)))
    if not more:
        return told
    return [message for _, message in merge(_with_moments(told), more, key=itemgetter(0))]


def message_texts(message: Message) -> Iterator[str]:
    """What a message says; the output of a call that was still running is not what came of it."""
    if content := message.content.strip():
        yield content
    tool = message.tool
    if tool is not None and tool.status != "pending" and tool.result and (result := tool.result.strip()):
        yield result


def _has(message: Message, text: str) -> bool:
    return text in message.content or text in ((message.tool and message.tool.result) or "")


def _with_moments(messages: Iterable[Message]) -> Iterator[tuple[float, Message]]:
    """Messages with times that never go back; one without a time has that of the one before it."""
    latest = float("-inf")
    for message in messages:
        if message.timestamp is not None:
            latest = max(latest, message.timestamp.timestamp())
        yield latest, message
