"""Merge messages of several records: repeated messages, tool calls and their results."""

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from operator import itemgetter

from msgspec.structs import replace

from backscroll.model.message import Message, ToolCall
from backscroll.model.stream import Item, ToolResult

__all__ = [
    "ORPHAN_RESULT",
    "calls_by_id",
    "is_same_response",
    "merge_messages",
    "merge_repeated_call",
    "message_for_orphan_result",
    "message_texts",
    "with_result",
]


def merge_messages(messages: Sequence[Message], others: Iterable[Message]) -> Sequence[Message]:
    """Return the messages of two stores, the first in its own order.

    Messages that only the second store has are inserted by timestamp. If both have a message and the second
    has additional text, its version is added as an inactive message.
    """
    if not messages:
        return list(others)
    known: dict[str, list[Message]] = {}
    for message in messages:
        known.setdefault(message.id, []).append(message)
    more: list[tuple[float, Message]] = []
    for timestamp, message in _with_timestamps(others):
        first = known.get(message.id)
        if first is None:
            more.append((timestamp, message))
        elif not all(any(_contains(version, text) for version in first) for text in message_texts(message)):
            more.append((timestamp, replace(message, is_active=False)))
    if not more:
        return messages
    return [message for _, message in merge(_with_timestamps(messages), more, key=itemgetter(0))]


def message_texts(message: Message) -> Iterator[str]:
    """Yield the texts of a message. The output of a running call is not a result yet."""
    if content := message.content.strip():
        yield content
    tool = message.tool
    if tool is not None and tool.status != "pending" and tool.result and (result := tool.result.strip()):
        yield result


def _contains(message: Message, text: str) -> bool:
    return text in message.content or text in ((message.tool and message.tool.result) or "")


def _with_timestamps(messages: Iterable[Message]) -> Iterator[tuple[float, Message]]:
    """Yield messages with non-decreasing timestamps. A message without one gets that of its predecessor."""
    latest = float("-inf")
    for message in messages:
        if message.timestamp is not None:
            latest = max(latest, message.timestamp.timestamp())
        yield latest, message


ORPHAN_RESULT = "answer without a call"  # kind of a message; stored in archives


def is_same_response(first: Message, second: Message) -> bool:
    """Return whether a repeated call is the same one. Some gateways reuse an id in several responses."""
    return first.response_id is not None and first.response_id == second.response_id


def merge_repeated_call(repeated: Message, known: Message) -> Message:
    """Return a call that was written again, with the result it already had."""
    if repeated.tool is None or known.tool is None or known.tool.result is None:
        return repeated
    tool = replace(
        repeated.tool,
        result=known.tool.result,
        status=known.tool.status,
        decision=known.tool.decision,
        edits=known.tool.edits,
    )
    attachments = tuple(dict.fromkeys(repeated.attachments + known.attachments))
    return replace(repeated, tool=tool, attachments=attachments)


def message_for_orphan_result(result: ToolResult) -> Message:
    """Return a message for a result without a call. The call may follow later."""
    record, call = result.record_id, result.tool_call_id
    return Message(
        id=f"{record}.{call}" if record is not None else f"answer-{call}",
        role="tool",
        content="",
        origin=result.origin,
        kind=ORPHAN_RESULT,
        timestamp=result.timestamp,
        timestamp_source="stored" if result.timestamp else None,
        tool=with_result(ToolCall(result.tool_call_id, "unknown"), result),
        attachments=result.attachments,
    )


def with_result(tool: ToolCall, result: ToolResult) -> ToolCall:
    """Return a call with its result. A failed call loses its edits; a rejected call keeps them.

    A later result of a cancelled call can withdraw its decision.
    """
    decided = None if result.status == "cancelled" else tool.decision
    proposed = tool.edits if result.status == "completed" or result.decision == "rejected" else ()
    return ToolCall(
        tool.id,
        tool.name,
        tool.params,
        result.result,
        result.status,
        result.decision or decided,
        result.edits or proposed,
    )


def calls_by_id(items: Iterable[Item]) -> dict[str, ToolCall]:
    """Return the tool calls of a stream with their results. Of calls with the same id the last one counts."""
    calls: dict[str, Message] = {}
    for item in items:
        match item:
            case Message(tool=ToolCall(id=str(id_))) if id_:
                known = calls.get(id_)
                if known is not None and known.id != item.id and is_same_response(known, item):
                    continue
                if known is not None and (known.kind == ORPHAN_RESULT or known.id == item.id):
                    item = merge_repeated_call(item, known)
                calls[id_] = item
            case ToolResult(tool_call_id=id_):
                known = calls.get(id_)
                if known is None or known.tool is None:
                    calls[id_] = message_for_orphan_result(item)
                else:
                    calls[id_] = replace(known, tool=with_result(known.tool, item))
    return {id_: message.tool for id_, message in calls.items() if message.tool is not None}
