"""A message as the model saw it, taken apart into what was said, thought and done."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from backscroll.model import Attachment, Message, Origin, RecordCounts, Role, TimeSource, ToolCall, ToolResult
from backscroll.readers import lenient_json
from backscroll.readers.json_outline import safe_name
from backscroll.readers.text_values import text_in
from backscroll.sources.cursor_graph.calls_without_id import RESULT_WITHOUT_ID
from backscroll.sources.cursor_graph.edits import as_created, parse_edits
from backscroll.sources.cursor_graph.pending_calls import CallTracker, call_id
from backscroll.sources.cursor_graph.prompt_text import Prompt, parse_prompt
from backscroll.sources.cursor_graph.tool_calls import (
    UNKNOWN_TOOL,
    call_params,
    cursor_options,
    parse_attachment,
    parse_outcome,
)

__all__ = [
    "RecordInfo",
    "build_message",
    "call_ids",
    "decode_message",
    "is_summary",
    "message_parts",
    "message_text",
    "model_name",
    "parse_parts",
    "part_texts",
    "user_prompt",
    "without_prompt_parts",
]

_CALL_TYPES = ("tool-call", "tool_call", "tool_use")
_RESULT_TYPES = ("tool-result", "tool_result")
_THINKING_TYPES = ("reasoning", "thinking")
_REDACTED_TYPES = ("redacted-reasoning", "redacted_thinking")
_TEXT_TYPES = ("text", "input_text", "output_text")


class RecordInfo(msgspec.Struct, frozen=True):
    """What every message out of one record has in common."""

    id: str
    origin: Origin
    timestamp: datetime | None = None
    timestamp_source: TimeSource | None = None
    model: str | None = None


def decode_message(data: bytes) -> dict[str, Any] | None:
    """A message's JSON, or None when it is none."""
    try:
        value = msgspec.json.decode(data)
    except lenient_json.FAILURES:
        try:
            value = lenient_json.load(data)
        except lenient_json.FAILURES:
            return None
    return value if isinstance(value, dict) else None


def message_parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A message's parts, whichever of the shapes it has: text, list of parts, or calls beside the text."""
    content = message.get("content")
    parts: list[dict[str, Any]] = []
    is_whole_answer = message.get("tool_call_id") or isinstance(content, str)
    if message.get("role") == "tool" and is_whole_answer:
        told = {"toolCallId": call_id(message), "toolName": message.get("name"), "result": content}
        return [{"type": "tool-result", **told}]
    if isinstance(content, str):
        parts.append({"type": "text", "text": content})
    elif isinstance(content, list):
        parts += [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
    elif isinstance(content, dict):
        parts.append(content)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            parts.append(
                {
                    "type": "tool-call",
                    "toolCallId": call.get("id"),
                    "toolName": function.get("name"),
                    "args": function.get("arguments"),
                }
            )
    return [part for part in parts if isinstance(part, dict)]


def call_ids(message: dict[str, Any]) -> tuple[str, ...]:
    """The ids of the calls in a message."""
    return tuple(
        id
        for part in message_parts(message)
        if part.get("type") in _CALL_TYPES and (id := call_id(part)) is not None
    )


def is_summary(message: dict[str, Any]) -> bool:
    """Whether the tool wrote this message in place of older ones."""
    return cursor_options(message).get("isSummary") is True


def user_prompt(message: dict[str, Any]) -> Prompt:
    """What a person typed in a user message."""
    prompt = parse_prompt(message_text(message))
    attached = tuple(
        found for part in message_parts(message) if (found := parse_attachment(part)) is not None
    )
    if not attached:
        return prompt
    # The picture itself says more than the note that there is one.
    noted = prompt.attachments if any(note.path for note in prompt.attachments) else ()
    return msgspec.structs.replace(prompt, attachments=attached + noted[len(attached) :])


def model_name(message: dict[str, Any]) -> str | None:
    """The model that a message names, on itself or on one of its parts."""
    for holder in (*message_parts(message), message):
        name = cursor_options(holder).get("modelName")
        if isinstance(name, str) and name and name != "default":
            return name
    return None


def parse_parts(
    message: dict[str, Any], place: RecordInfo, *, calls: CallTracker, tally: RecordCounts, number: int = 0
) -> Iterator[Message | ToolResult]:
    """The messages and answers in an assistant's, tool's or unknown record, in the order written.

    ``number`` is how many messages the record has given already.
    """
    speaker: Role = "assistant" if message.get("role") in ("assistant", "tool") else "system"
    parts = message_parts(message)
    # The tool's own account of a call stands on the message and does not say of which.
    is_single = sum(part.get("type") in _RESULT_TYPES for part in parts) == 1
    note = cursor_options(message).get("highLevelToolCallResult") if is_single else None
    for part in parts:
        kind = part.get("type")
        said: Message | ToolResult | None
        spot = place if not number else msgspec.structs.replace(place, id=f"{place.id}.{number}")
        if kind in _CALL_TYPES:
            said = _call(part, spot, calls, record=place.id)
        elif kind in _RESULT_TYPES:
            said = _answer(part, spot, calls, note)
        elif kind in _THINKING_TYPES or kind in _REDACTED_TYPES:
            thought = _text(part) or ""
            said = build_message(spot, "thinking", thought, kind=None if thought.strip() else "redacted")
        elif (text := _text(part)) is not None:
            said = build_message(spot, speaker, text) if text.strip() else None
            if kind not in _TEXT_TYPES:
                tally.add_unknown(f"part type {safe_name(kind)}")
        elif (attached := parse_attachment(part)) is not None:
            said = build_message(spot, speaker, "", attachments=(attached,))
        else:
            tally.add_unknown(f"part type {safe_name(kind)}")
            words = text_in(part)
            said = build_message(spot, speaker, words, kind="unknown block") if words else None
        if said is not None:
            number += isinstance(said, Message)
            yield said


def without_prompt_parts(message: dict[str, Any]) -> dict[str, Any]:
    """What stands in a user's message beside text and pictures: answers, in some versions."""
    rest = [part for part in message_parts(message) if _text(part) is None and parse_attachment(part) is None]
    return {**message, "role": "tool", "content": rest, "tool_calls": None}


def part_texts(message: dict[str, Any]) -> set[str]:
    """What was said and thought in a message, each part for itself."""
    return {text.strip() for part in message_parts(message) if (text := _text(part)) and text.strip()}


def message_text(message: dict[str, Any]) -> str:
    """All the text of a message, whoever wrote it."""
    return "\n".join(text for part in message_parts(message) if (text := _text(part)) is not None).strip()


def build_message(
    place: RecordInfo,
    role: Role,
    content: str,
    *,
    kind: str | None = None,
    tool: ToolCall | None = None,
    attachments: tuple[Attachment, ...] = (),
) -> Message:
    """A message of a record, at the record's place."""
    return Message(
        id=place.id,
        role=role,
        content=content,
        origin=place.origin,
        kind=kind,
        timestamp=place.timestamp,
        timestamp_source=place.timestamp_source,
        model=place.model,
        tool=tool,
        attachments=attachments,
    )


def _call(part: dict[str, Any], place: RecordInfo, calls: CallTracker, *, record: str) -> Message:
    name = _name(part)
    params = call_params(part)
    edits = parse_edits(name, params)
    id = calls.make(call_id(part), record, edits)
    # What is answered has done nothing before its answer says so.
    tool = ToolCall(id, name, params, edits=() if calls.are_answered else edits)
    return build_message(place, "tool", "", tool=tool)


def _answer(
    part: dict[str, Any], place: RecordInfo, calls: CallTracker, note: Any
) -> Message | ToolResult | None:
    """An answer to its call; where the call is gone, what came of it stands for both."""
    outcome = parse_outcome(part, note)
    id = call_id(part)
    call = calls.answer(id, outcome.text)
    if call is not None:
        edits = call.edits if outcome.status == "completed" else ()
        return ToolResult(
            tool_call_id=call.id,
            result=outcome.text,
            origin=place.origin,
            status=outcome.status,
            decision=outcome.decision,
            timestamp=place.timestamp,
            edits=as_created(edits) if outcome.is_new_file else edits,
            attachments=outcome.attachments,
        )
    if calls.is_repeated(id, outcome.text):
        return None
    made = calls.make(id, place.id)
    calls.answer(id, outcome.text)
    tool = ToolCall(made, _name(part), result=outcome.text, status=outcome.status, decision=outcome.decision)
    kind = RESULT_WITHOUT_ID if id is None else None
    return build_message(place, "tool", "", kind=kind, tool=tool, attachments=outcome.attachments)


def _name(part: dict[str, Any]) -> str:
    name = part.get("toolName") or part.get("name")
    return name if isinstance(name, str) and name else UNKNOWN_TOOL


def _text(part: dict[str, Any]) -> str | None:
    text = part.get("text")
    if text is None:
        text = part.get("thinking")
    return text if isinstance(text, str) else None
