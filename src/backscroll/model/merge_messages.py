"""Merge the messages of a session that two stores have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from operator import itemgetter

from msgspec.structs import replace

from backscroll.model.message import PLACEHOLDER_KINDS, Message, record_id_of

__all__ = [
    "merge_messages",
    "message_texts",
]


def merge_messages(messages: Sequence[Message], others: Iterable[Message]) -> Sequence[Message]:
    """Return the messages of two stores, the first in its own order.

    Messages that only the second store has are inserted by timestamp, or replace a placeholder of their
    record. If both have a message and the second has additional text, its version is added as an inactive
    message.
    """
    if not messages:
        return list(others)
    placeholders = {
        record_id_of(message.id): message for message in messages if message.kind in PLACEHOLDER_KINDS
    }
    if placeholders:
        others = list(others)
        messages = _fill_placeholders(messages, placeholders, others)
    known: dict[str, list[Message]] = {}
    for message in messages:
        known.setdefault(message.id, []).append(message)
    more: list[tuple[float, Message]] = []
    for timestamp, message in _with_timestamps(others):
        first = known.get(message.id)
        if first is None:
            more.append((timestamp, message))
        elif not all(any(_contains(one, text, message) for one in first) for text in message_texts(message)):
            more.append((timestamp, replace(message, is_active=False)))
    if not more:
        return messages
    return [message for _, message in merge(_with_timestamps(messages), more, key=itemgetter(0))]


def _fill_placeholders(
    messages: Sequence[Message], placeholders: Mapping[str, Message], others: Iterable[Message]
) -> Sequence[Message]:
    """Return the messages with the others' content in the places of placeholders.

    An inactive message does not fill an active placeholder: it was replaced before the record was lost.
    """
    fillings: dict[str, list[Message]] = {}
    for other in others:
        placeholder = placeholders.get(record_id_of(other.id))
        if (
            placeholder is not None
            and other.kind not in PLACEHOLDER_KINDS
            and (other.is_active or not placeholder.is_active)
        ):
            fillings.setdefault(placeholder.id, []).append(other)
    if not fillings:
        return messages
    filled: list[Message] = []
    for message in messages:
        is_placeholder = message.kind in PLACEHOLDER_KINDS
        filled += fillings.pop(message.id, [message]) if is_placeholder else [message]
    return filled


def message_texts(message: Message) -> Iterator[str]:
    """Yield the texts of a message. The output of a running call is not a result yet."""
    if content := message.content.strip():
        yield content
    tool = message.tool
    if tool is not None and tool.status != "pending" and tool.result and (result := tool.result.strip()):
        yield result


def _contains(message: Message, text: str, other: Message) -> bool:
    """Return whether a message contains a text of another one. A third one may replace a placeholder."""
    if message.kind in PLACEHOLDER_KINDS and other.kind not in PLACEHOLDER_KINDS:
        return False
    return text in message.content or text in ((message.tool and message.tool.result) or "")


def _with_timestamps(messages: Iterable[Message]) -> Iterator[tuple[float, Message]]:
    """Yield messages with non-decreasing timestamps. A message without one gets that of its predecessor."""
    latest = float("-inf")
    for message in messages:
        if message.timestamp is not None:
            latest = max(latest, message.timestamp.timestamp())
        yield latest, message
