"""Messages of a Cursor session, independent of the format in which they are written.

The same list of messages can be written as chat tabs, inline conversations, bubble
rows, graphs or transcripts.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

# Encoding of a JSON value in a field: as JSON text, as an object, or as JSON text inside JSON text.
JsonEncoding: TypeAlias = Literal["json", "object", "double"]


@dataclass(frozen=True)
class Tool:
    """Tool call with its result."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None  # None: no result
    status: str = "completed"
    call_id: str | None = None
    number: int | None = None  # None: derived from the name
    error: Any = None
    decision: str | None = None
    additional: Mapping[str, Any] = field(default_factory=dict)
    encoding: JsonEncoding = "json"
    has_raw_args: bool = True
    fields: Mapping[str, Any] = field(default_factory=dict)  # override the fields of the record


@dataclass(frozen=True)
class Message:
    """Content of one bubble. It can have text, thinking and a tool call at the same time."""

    role: Literal["user", "assistant"]
    text: str = ""
    thinking: Any = None
    tool: Tool | None = None
    id: str | None = None
    at: int | None = None  # milliseconds; None: assigned when the session is written
    is_simulated: bool = False
    is_stored: bool = True  # False: in the message list, but without a row
    is_listed: bool = True  # False: has a row, but is not in the message list
    fields: Mapping[str, Any] = field(default_factory=dict)  # override the fields of the bubble
    header: Mapping[str, Any] = field(default_factory=dict)  # override the fields of the list entry


def user(text: str, *, files: Sequence[str] = (), at: int | None = None, **fields: Any) -> Message:
    """Return a prompt with attached files."""
    if files:
        chosen = [{"uri": {"fsPath": path, "scheme": "file", "path": path}} for path in files]
        fields["context"] = {"fileSelections": chosen, "selectedImages": []}
    return Message("user", text, at=at, fields=fields)


def assistant(text: str, *, thinking: str | None = None, at: int | None = None, **fields: Any) -> Message:
    """Return a response. Some versions store its thinking in the same bubble."""
    return Message("assistant", text, thinking=thinking, at=at, fields=fields)


def thinking(
    text: str, *, encoding: Literal["object", "text", "json"] = "object", milliseconds: int = 900
) -> Message:
    """Return a thinking bubble. The thinking is an object, plain text or JSON text."""
    thought = {"text": text, "signature": "c2lnbmVk"}
    match encoding:
        case "object":
            value: Any = thought
        case "text":
            value = text
        case "json":
            value = json.dumps(thought, ensure_ascii=False, separators=(",", ":"))
    return Message(
        "assistant", thinking=value, fields={"capabilityType": 30, "thinkingDurationMs": milliseconds}
    )


def tool(name: str, params: Mapping[str, Any] | None = None, result: Any = None, **fields: Any) -> Message:
    """Return a tool call. ``fields`` are the other fields of `Tool`."""
    return Message("assistant", tool=Tool(name, params or {}, result, **fields))


def failed(name: str, params: Mapping[str, Any], reason: str, *, encoding: JsonEncoding = "json") -> Message:
    """Return a tool call that failed with an error that the user sees."""
    error = {"clientVisibleErrorMessage": reason, "modelVisibleErrorMessage": reason}
    return tool(name, params, status="error", error=error, encoding=encoding)


def cancelled(name: str, params: Mapping[str, Any]) -> Message:
    """Return a tool call that the user cancelled."""
    return tool(name, params, status="cancelled")


def rejected(command: str, folder: str) -> Message:
    """Return a shell command that the user rejected."""
    review = {"status": "Done", "selectedOption": "skip"}
    return tool(
        "run_terminal_cmd",
        {"command": command, "cwd": folder},
        {"output": "", "rejected": True, "notInterrupted": True},
        status="cancelled",
        decision="rejected",
        has_raw_args=False,
        additional={"status": "rejected", "reviewData": review},
    )


def loading(name: str, params: Mapping[str, Any]) -> Message:
    """Return a tool call that was still running when the row was written."""
    return tool(name, params, status="loading")


def image(name: str = "screenshot", *, uuid: str = "5f0e0000-0000-4000-8000-00000000cafe") -> Message:
    """Return a prompt with only an image, stored inline as old versions did."""
    pixels = {str(index): value for index, value in enumerate(b"\x89PNG\r\n\x1a\n")}
    size = {"width": 640, "height": 480}
    chosen = {"uuid": uuid, "path": f"images/{name}-{uuid}.png", "dimension": size, "loadedAt": 1790000000000}
    return Message(
        "user",
        fields={
            "images": [{"uuid": uuid, "dimension": size, "data": pixels}],
            "context": {"fileSelections": [], "selectedImages": [chosen]},
        },
    )


def empty() -> Message:
    """Return an empty response, as an interrupted stream leaves it."""
    return Message("assistant")


def simulated(text: str, *, task: str = "task-1") -> Message:
    """Return a user bubble that Cursor wrote when a background task ended."""
    metadata = {"taskId": task, "title": "Background task"}
    return Message(
        "user", text, is_simulated=True, fields={"isSimulatedMsg": True, "simulatedMessageMetadata": metadata}
    )


def missing(message: Message, *, preview: str = "") -> Message:
    """Return the same message without its row. The message list still contains it."""
    grouping = {"grouping": {"isRenderable": True, "hasText": True, "textPreview": preview}}
    return replace(message, is_stored=False, header=grouping if preview else {})


def orphaned(message: Message) -> Message:
    """Return the same message without its list entry, as a rewind leaves it."""
    return replace(message, is_listed=False)


def with_empty_tool_data(message: Message) -> Message:
    """Return the same message with empty tool data, as versions of mid-2025 wrote it."""
    return replace(message, fields={**message.fields, "toolFormerData": {"additionalData": {}}})
