"""Build the messages of a turn from its steps, if the conversation has no messages for it."""

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
    record_info: Callable[[str, MessageTime | None], RecordInfo],
    turn_time_ms: int | None,
    model: str | None = None,
) -> Iterator[tuple[Message, str]]:
    """Return the messages of a turn, each with the id of its blob. Steps do not name their model."""
    stored, timed = timestamps.from_value(turn.timestamp_ms), timestamps.from_value(turn_time_ms)
    start = MessageTime(stored, "stored") if stored else MessageTime(timed, "turn") if timed else None
    user_id = turn.user_id or turn.id
    if turn.output is not None:
        tool = ToolCall(None, "Shell", {"command": turn.text}, turn.output, "completed")
        yield build_message(record_info(user_id, start), "tool", "", kind="command", tool=tool), user_id
    elif turn.text.strip() or turn.has_context:
        kind = "synthetic" if turn.is_simulated else None
        # A prompt may be an attachment without text. Its type is unknown without a schema.
        attached = () if turn.text.strip() else (Attachment("context"),)
        prompt = build_message(
            record_info(user_id, start), "user", turn.text.strip(), kind=kind, attachments=attached
        )
        yield prompt, user_id
    for step in steps:
        at = timestamps.from_value(step.timestamp_ms)
        content = _step_content(step, calls)
        if content is None:
            continue
        role, text, tool_call = content
        time = MessageTime(at, "stored") if at else start and msgspec.structs.replace(start, source="turn")
        info = msgspec.structs.replace(record_info(step.id, time), model=model)
        yield build_message(info, role, text, tool=tool_call), step.id


def _step_content(step: Step, calls: CallTracker) -> tuple[Role, str, ToolCall | None] | None:
    if step.call is not None:
        return "tool", "", _tool_call(step.id, step.call, calls)
    if step.thinking:
        return "thinking", step.thinking, None
    if step.text and step.text.strip():
        return "assistant", step.text, None
    return None


def _unwrap(result: Any) -> Any:
    """Remove enclosing records that have a single field."""
    while isinstance(result, dict) and len(result) == 1:
        (result,) = result.values()
    return result


def _tool_call(step_id: str, call: StepCall, calls: CallTracker) -> ToolCall:
    result = None if call.result is None else value_text(_unwrap(call.result), [])
    is_done = result is not None or call.completed_ms is not None
    return ToolCall(
        calls.add_call(call.id, step_id),
        call.name,
        call.params,
        result,
        "completed" if is_done else "pending",
        edits=parse_edits(call.name, call.params) if is_done else (),
    )
