"""What is said in a Cursor session, before it is written in any of Cursor's formats.

The same list of messages can be written as chat tabs, inline conversations,
bubble rows, blob graphs or transcripts. The functions here make the kinds of
message that those formats know.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

__all__ = [
    "Message",
    "Spelling",
    "Tool",
    "assistant",
    "cancelled",
    "empty",
    "failed",
    "image",
    "loading",
    "missing",
    "orphaned",
    "rejected",
    "simulated",
    "thinking",
    "tool",
    "user",
    "with_hollow_tool",
]

# How a JSON value is written into a field: as text, as it is, or as text inside text.
Spelling: TypeAlias = Literal["json", "object", "double"]


@dataclass(frozen=True)
class Tool:
    """A tool call with what came of it."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None  # None: not answered
    status: str = "completed"
    call_id: str | None = None
    number: int | None = None  # the tool enum; taken from the name when not given
    error: Any = None
    decision: str | None = None
    additional: Mapping[str, Any] = field(default_factory=dict)
    spelling: Spelling = "json"
    has_raw_args: bool = True
    fields: Mapping[str, Any] = field(default_factory=dict)  # laid over the record as they are


@dataclass(frozen=True)
class Message:
    """One bubble's worth of talk. A bubble may carry text, thinking and a tool call at once."""

    role: Literal["user", "assistant"]
    text: str = ""
    thinking: Any = None
    tool: Tool | None = None
    id: str | None = None
    at: int | None = None  # milliseconds; spread evenly over the session when not given
    is_simulated: bool = False
    is_stored: bool = True  # False: named in the list, but without a row of its own
    is_listed: bool = True  # False: a row of its own, but not named in the list
    fields: Mapping[str, Any] = field(default_factory=dict)  # laid over the bubble as they are
    header: Mapping[str, Any] = field(default_factory=dict)  # laid over the list entry as they are


def user(text: str, *, files: Sequence[str] = (), at: int | None = None, **fields: Any) -> Message:
    """Something the person typed, with the files attached to it."""
    if files:
        chosen = [{"uri": {"fsPath": path, "scheme": "file", "path": path}} for path in files]
        fields["context"] = {"fileSelections": chosen, "selectedImages": []}
    return Message("user", text, at=at, fields=fields)


def assistant(text: str, *, thinking: str | None = None, at: int | None = None, **fields: Any) -> Message:
    """An answer, with the thinking that some versions keep on the same bubble."""
    return Message("assistant", text, thinking=thinking, at=at, fields=fields)


def thinking(
    text: str, *, spelling: Literal["object", "text", "json"] = "object", milliseconds: int = 900
) -> Message:
    """A thinking bubble; the thinking is an object, bare text or an object written as text."""
    whole = {"text": text, "signature": "c2lnbmVk"}
    match spelling:
        case "object":
            value: Any = whole
        case "text":
            value = text
        case "json":
            value = json.dumps(whole, ensure_ascii=False, separators=(",", ":"))
    return Message(
        "assistant", thinking=value, fields={"capabilityType": 30, "thinkingDurationMs": milliseconds}
    )


def tool(name: str, params: Mapping[str, Any] | None = None, result: Any = None, **more: Any) -> Message:
    """A tool call; ``more`` are the other fields of `Tool`."""
    return Message("assistant", tool=Tool(name, params or {}, result, **more))


def failed(name: str, params: Mapping[str, Any], why: str, *, spelling: Spelling = "json") -> Message:
    """A tool call that ended in an error shown to the person."""
    error = {"clientVisibleErrorMessage": why, "modelVisibleErrorMessage": why}
    return tool(name, params, status="error", error=error, spelling=spelling)


def cancelled(name: str, params: Mapping[str, Any]) -> Message:
    """A tool call that the person stopped."""
    return tool(name, params, status="cancelled")


def rejected(command: str, folder: str) -> Message:
    """A shell command that the person refused to run."""
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
    """A tool call that was still running when the row was written."""
    return tool(name, params, status="loading")


def image(name: str = "screenshot", *, uuid: str = "5f0e0000-0000-4000-8000-00000000cafe") -> Message:
    """A user bubble that holds nothing but a picture, inline the way old versions kept it."""
    pixels = {str(place): value for place, value in enumerate(b"\x89PNG\r\n\x1a\n")}
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
    """The shell of an answer that never came: a fragment left by streaming."""
    return Message("assistant")


def simulated(text: str, *, task: str = "task-1") -> Message:
    """A user bubble that Cursor wrote itself, when a background task ended."""
    about = {"taskId": task, "title": "Background task"}
    return Message(
        "user", text, is_simulated=True, fields={"isSimulatedMsg": True, "simulatedMessageMetadata": about}
    )


def missing(message: Message, *, preview: str = "") -> Message:
    """The same message, named in the list while its row is gone."""
    grouping = {"grouping": {"isRenderable": True, "hasText": True, "textPreview": preview}}
    return replace(message, is_stored=False, header=grouping if preview else {})


def orphaned(message: Message) -> Message:
    """The same message, as a rewind leaves it: a row that no list names."""
    return replace(message, is_listed=False)


def with_hollow_tool(message: Message) -> Message:
    """The same message as mid-2025 versions wrote it: with tool data that is no tool call."""
    return replace(message, fields={**message.fields, "toolFormerData": {"additionalData": {}}})
