"""Merge tool calls with their results, and with the same call in a later record."""

from collections.abc import Iterable

from msgspec.structs import replace

from backscroll.model.message import Message, ToolCall
from backscroll.model.stream.items import Item, ToolResult

__all__ = [
    "ORPHAN_RESULT",
    "calls_by_id",
    "is_same_response",
    "merge_repeated_call",
    "message_for_orphan_result",
    "with_result",
]

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
