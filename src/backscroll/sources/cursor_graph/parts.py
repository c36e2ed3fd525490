"""A message as the model saw it, taken apart into what was said, thought and done."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from backscroll.model import Answer, Attachment, Message, Origin, Role, Tally, TimeSource, ToolCall
from backscroll.readers import lenient
from backscroll.sources.cursor_graph.edits import edits_of
from backscroll.sources.cursor_graph.prompt import Prompt, read_prompt
from backscroll.sources.cursor_graph.tools import attachment_of, params_of, read_outcome

__all__ = [
    "Calls",
    "Place",
    "calls_in",
    "load_message",
    "message_at",
    "model_of",
    "parts_of",
    "prompt_of",
    "said_by",
    "text_of",
]

_CALLS = ("tool-call", "tool_call", "tool_use")
_RESULTS = ("tool-result", "tool_result")
_THOUGHTS = ("reasoning", "thinking")
_REDACTED = ("redacted-reasoning", "redacted_thinking")
_TEXTS = ("text", "input_text", "output_text")


class Place(msgspec.Struct, frozen=True):
    """What every message out of one record has in common."""

    id: str
    origin: Origin
    timestamp: datetime | None = None
    timestamp_source: TimeSource | None = None
    model: str | None = None


class Calls:
    """Which calls a session has made. Some models number their calls anew in every turn."""

    def __init__(self) -> None:
        self._uses: dict[str, int] = {}
        self._names: dict[str, str] = {}

    def make(self, id: Any) -> str | None:
        """The id of a new call, made different from an earlier one's."""
        if not isinstance(id, str) or not id:
            return None
        self._uses[id] = self._uses.get(id, 0) + 1
        self._names[id] = id if self._uses[id] == 1 else f"{id}#{self._uses[id]}"
        return self._names[id]

    def find(self, id: Any) -> str | None:
        """The call that an answer belongs to: the last one of that id."""
        return self._names.get(id) if isinstance(id, str) else None


def load_message(data: bytes) -> dict[str, Any] | None:
    """A message's JSON, or None when it is none."""
    try:
        value = msgspec.json.decode(data)
    except lenient.FAILURES:
        try:
            value = lenient.load(data)
        except lenient.FAILURES:
            return None
    return value if isinstance(value, dict) else None


def parts_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """A message's parts, whichever of the shapes it has: text, list of parts, or calls beside the text."""
    content = message.get("content")
    parts: list[dict[str, Any]] = []
    if message.get("role") == "tool" and message.get("tool_call_id"):
        name = message.get("name")
        return [
            {
                "type": "tool-result",
                "toolCallId": message["tool_call_id"],
                "toolName": name,
                "result": content,
            }
        ]
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


def calls_in(message: dict[str, Any]) -> tuple[str, ...]:
    """The ids of the calls in a message."""
    return tuple(
        id
        for part in parts_of(message)
        if part.get("type") in _CALLS and isinstance(id := _call_id(part), str)
    )


def prompt_of(message: dict[str, Any]) -> Prompt:
    """What a person typed in a user message."""
    prompt = read_prompt(text_of(message))
    attached = tuple(found for part in parts_of(message) if (found := attachment_of(part)) is not None)
    if not attached:
        return prompt
    # The picture itself says more than the note that there is one.
    noted = prompt.attachments if any(note.path for note in prompt.attachments) else ()
    return msgspec.structs.replace(prompt, attachments=attached + noted[len(attached) :])


def model_of(message: dict[str, Any]) -> str | None:
    """The model that a message names, on itself or on one of its parts."""
    for holder in (*parts_of(message), message):
        options = holder.get("providerOptions")
        cursor = options.get("cursor") if isinstance(options, dict) else None
        name = cursor.get("modelName") if isinstance(cursor, dict) else None
        if isinstance(name, str) and name and name != "default":
            return name
    return None


def said_by(
    message: dict[str, Any], place: Place, *, calls: Calls, tally: Tally
) -> Iterator[Message | Answer]:
    """The messages and answers in an assistant's, tool's or unknown record, in the order written."""
    number = 0
    speaker: Role = "assistant" if message.get("role") in ("assistant", "tool") else "system"
    for part in parts_of(message):
        kind = part.get("type")
        said: Message | Answer | None
        spot = place if not number else msgspec.structs.replace(place, id=f"{place.id}.{number}")
        if kind in _CALLS:
            said = _call(part, spot, calls)
        elif kind in _RESULTS:
            said = _answer(part, spot, calls)
        elif kind in _THOUGHTS or kind in _REDACTED:
            thought = _text(part) or ""
            said = message_at(spot, "thinking", thought, kind=None if thought.strip() else "redacted")
        elif (text := _text(part)) is not None:
            said = message_at(spot, speaker, text) if text.strip() else None
            if kind not in _TEXTS:
                tally.meet(f"part type {kind}")
        elif (attached := attachment_of(part)) is not None:
            said = message_at(spot, speaker, "", attachments=(attached,))
        else:
            tally.meet(f"part type {kind}")
            said = None
        if said is not None:
            number += isinstance(said, Message)
            yield said


def text_of(message: dict[str, Any]) -> str:
    """All the text of a message, whoever wrote it."""
    return "\n".join(text for part in parts_of(message) if (text := _text(part)) is not None).strip()


def message_at(
    place: Place,
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


def _call(part: dict[str, Any], place: Place, calls: Calls) -> Message:
    name = _name(part)
    params = params_of(part)
    tool = ToolCall(calls.make(_call_id(part)), name, params, edits=edits_of(name, params))
    return message_at(place, "tool", "", tool=tool)


def _answer(part: dict[str, Any], place: Place, calls: Calls) -> Message | Answer:
    """An answer to its call; where the call is gone, what came of it stands for both."""
    outcome = read_outcome(part)
    call = calls.find(_call_id(part))
    if call is not None:
        return Answer(
            tool_call_id=call,
            result=outcome.text,
            origin=place.origin,
            status=outcome.status,
            timestamp=place.timestamp,
            attachments=outcome.attachments,
        )
    tool = ToolCall(calls.make(_call_id(part)), _name(part), result=outcome.text, status=outcome.status)
    return message_at(place, "tool", "", tool=tool, attachments=outcome.attachments)


def _call_id(part: dict[str, Any]) -> Any:
    return next(
        (part[key] for key in ("toolCallId", "tool_call_id", "tool_use_id", "id") if part.get(key)), None
    )


def _name(part: dict[str, Any]) -> str:
    name = part.get("toolName") or part.get("name")
    return name if isinstance(name, str) else "unknown"


def _text(part: dict[str, Any]) -> str | None:
    text = part.get("text")
    if text is None:
        text = part.get("thinking")
    return text if isinstance(text, str) else None
