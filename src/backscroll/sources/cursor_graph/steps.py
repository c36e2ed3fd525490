"""A turn told from its steps, for conversations of which only these are left."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from backscroll.model import Attachment, Message, Role, ToolCall
from backscroll.readers import timestamps
from backscroll.sources.cursor_graph.edits import parse_edits
from backscroll.sources.cursor_graph.message_parts import RecordInfo, build_message
from backscroll.sources.cursor_graph.pending_calls import CallTracker
from backscroll.sources.cursor_graph.timeline import MessageTime
from backscroll.sources.cursor_graph.tool_calls import value_text
from backscroll.sources.cursor_graph.turns import Step, StepCall, Turn

__all__ = ["turn_messages"]


def turn_messages(
    turn: Turn,
    steps: Iterable[Step],
    *,
    calls: CallTracker,
    place: Callable[[str, MessageTime | None], RecordInfo],
    timed_ms: int | None,
) -> Iterator[tuple[Message, str]]:
    """The messages of a turn, each with the blob it came from."""
    stored, timed = timestamps.from_value(turn.timestamp_ms), timestamps.from_value(timed_ms)
    opened = MessageTime(stored, "stored") if stored else MessageTime(timed, "turn") if timed else None
    user = turn.user_id or turn.id
    if turn.output is not None:
        tool = ToolCall(None, "Shell", {"command": turn.text}, turn.output, "completed")
        yield build_message(place(user, opened), "tool", "", kind="command", tool=tool), user
    elif turn.text.strip() or turn.has_context:
        kind = "synthetic" if turn.is_simulated else None
        # A picture alone is a prompt as well; what it is, only a schema would tell.
        attached = () if turn.text.strip() else (Attachment("context"),)
        said_there = build_message(
            place(user, opened), "user", turn.text.strip(), kind=kind, attachments=attached
        )
        yield said_there, user
    for step in steps:
        at = timestamps.from_value(step.timestamp_ms)
        said = _said(step, calls)
        if said is None:
            continue
        role, text, tool_call = said
        spot = MessageTime(at, "stored") if at else opened and msgspec.structs.replace(opened, source="turn")
        yield build_message(place(step.id, spot), role, text, tool=tool_call), step.id


def _said(step: Step, calls: CallTracker) -> tuple[Role, str, ToolCall | None] | None:
    if step.call is not None:
        return "tool", "", _tool(step.id, step.call, calls)
    if step.thinking:
        return "thinking", step.thinking, None
    if step.text and step.text.strip():
        return "assistant", step.text, None
    return None


def _bare(result: Any) -> Any:
    """A result without the records around it, when there is but one thing in them."""
    while isinstance(result, dict) and len(result) == 1:
        (result,) = result.values()
    return result


def _tool(step: str, call: StepCall, calls: CallTracker) -> ToolCall:
    result = None if call.result is None else value_text(_bare(call.result), [])
    is_done = result is not None or call.completed_ms is not None
    return ToolCall(
        calls.make(call.id, step),
        call.name,
        call.params,
        result,
        "completed" if is_done else "pending",
        edits=parse_edits(call.name, call.params) if is_done else (),
    )
