"""Messages in the format of each generation: chat tabs, inline bubbles, bubble rows."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from backscroll.testing.cursor.messages import JsonEncoding, Message, Tool
from backscroll.testing.cursor.tool_calls import tool_number

# Lists of editor state in every bubble, nearly always empty.
_EMPTY_LISTS = (
    "approximateLintErrors",
    "lints",
    "codebaseContextChunks",
    "commits",
    "pullRequests",
    "attachedCodeChunks",
    "assistantSuggestedDiffs",
    "gitDiffs",
    "interpreterResults",
    "suggestedCodeBlocks",
    "toolResults",
    "webReferences",
    "docsReferences",
    "cursorRules",
    "supportedTools",
    "todos",
    "allThinkingBlocks",
    "attachedFolders",
    "attachedFoldersNew",
    "capabilities",
    "images",
)


def dumps(value: Any) -> str:
    """Encode JSON as Cursor does: compact, unsorted, without ASCII escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def iso(at: int) -> str:
    """Format milliseconds as ISO 8601 text, as in bubbles."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def tool_data(tool: Tool, *, at: int, index: int = 0) -> dict[str, Any]:
    """Return the record of a tool call, for a bubble or the bubble map of an inline conversation."""
    params = dict(tool.params)
    data: dict[str, Any] = {
        "tool": tool_number(tool.name) if tool.number is None else tool.number,
        "toolIndex": index,
        "modelCallId": "",
        "toolCallId": tool.call_id,
        "name": tool.name,
        "status": tool.status,
        "rawArgs": dumps(params) if tool.has_raw_args else "",
        "params": _encode(params, tool.encoding),
    }
    if tool.result is not None:
        is_plain_text = isinstance(tool.result, str) and tool.encoding != "double"
        data["result"] = tool.result if is_plain_text else _encode(tool.result, tool.encoding)
    if tool.error is not None:
        data["error"] = tool.error if isinstance(tool.error, str) else _encode(tool.error, tool.encoding)
    if tool.decision is not None:
        data["userDecision"] = tool.decision
    outcome = {"completed": "success", "error": "error"}.get(tool.status, tool.status)
    data["additionalData"] = {"status": outcome, "startedAtMs": at, **tool.additional}
    return data | dict(tool.fields)


def _encode(value: Any, encoding: JsonEncoding) -> Any:
    match encoding:
        case "object":
            return value
        case "json":
            return dumps(value)
        case "double":
            return dumps(dumps(value))


def bubble(message: Message, *, id: str, at: int, generation: int, version: int = 3) -> dict[str, Any]:
    """Return the value of a bubble row. Version 2 has no time."""
    is_user = message.role == "user"
    record: dict[str, Any] = {"_v": version, "bubbleId": id, "type": 1 if is_user else 2}
    if version >= 3:
        record["createdAt"] = iso(at)
    elif not is_user:
        record["timingInfo"] = _timing(at, 1234 if at // 10_000 % 2 else None)
    record["text"] = message.text
    if is_user and message.text:
        record["richText"] = _rich_text(message.text, generation)
    record |= {name: [] for name in _EMPTY_LISTS}
    record["unifiedMode"] = 2
    record["isAgentic"] = True
    record["tokenCount"] = {"inputTokens": 0, "outputTokens": 0}
    if is_user:
        record["requestId"] = f"r-{id}"
        record["context"] = {"fileSelections": [], "selectedImages": []}
    if generation >= 3:
        record["conversationState"] = "~"
    if message.thinking is not None:
        record["thinking"] = message.thinking
    if message.tool is not None:
        record["capabilityType"] = 15
        record["toolFormerData"] = tool_data(message.tool, at=at)
    return record | dict(message.fields)


def bubble_header(message: Message, *, id: str, at: int, generation: int) -> dict[str, Any]:
    """Return the entry of a bubble in the message list of its composer."""
    header: dict[str, Any] = {"bubbleId": id, "type": 1 if message.role == "user" else 2}
    if generation == 2 and message.role == "assistant":
        header["serverBubbleId"] = f"s-{id}"
    if generation >= 3:
        header["createdAt"] = iso(at)
        header["grouping"] = _grouping(message)
    return header | dict(message.header)


def _grouping(message: Message) -> dict[str, Any]:
    is_renderable = bool(message.text or message.thinking or message.tool or message.fields)
    grouping: dict[str, Any] = {"isRenderable": is_renderable}
    if message.text:
        grouping |= {"hasText": True, "textPreview": message.text[:80]}
    if message.thinking is not None:
        grouping |= {"hasThinking": True, "thinkingDurationMs": 900}
    if "capabilityType" in message.fields:
        grouping["capabilityType"] = message.fields["capabilityType"]
    if message.tool is not None:
        grouping |= {
            "capabilityType": 15,
            "toolFormerTool": tool_number(message.tool.name),
            "toolFormerStatus": message.tool.status,
            "toolCallId": message.tool.call_id,
        }
    return grouping


def inline_bubble(message: Message, *, id: str, at: int, clock: int | None = None) -> dict[str, Any]:
    """Return a bubble of a composer's ``conversation``. It has neither a version nor a time.

    ``clock`` is a value of the performance clock, which some builds wrote instead of
    the start time.
    """
    is_user = message.role == "user"
    record: dict[str, Any] = {"type": 1 if is_user else 2, "bubbleId": id, "text": message.text}
    if is_user:
        record["richText"] = _rich_text(message.text, 1)
        record["context"] = {"notepads": [], "selections": [], "fileSelections": [], "folderSelections": []}
    else:
        record["timingInfo"] = _timing(at, clock)
        record["modelType"] = "model-y"
    if message.thinking is not None:
        record["thinking"] = message.thinking
    if message.tool is not None:
        record["capabilityType"] = 15
    return record | dict(message.fields)


def _timing(at: int, clock: int | None) -> dict[str, float]:
    return {
        "clientStartTime": float(at if clock is None else clock),
        "clientRpcSendTime": at + 40.5,
        "clientSettleTime": at + 900.25,
        "clientEndTime": at + 1000.0,
    }


def tab_bubble(message: Message, *, id: str) -> dict[str, Any]:
    """Return a bubble of the chat panel, which composers replaced."""
    if message.role == "user":
        record: dict[str, Any] = {"type": "user", "id": id, "text": message.text, "selections": []}
    else:
        record = {"type": "ai", "id": id, "rawText": message.text, "modelType": "model-y"}
    return record | dict(message.fields)


def _rich_text(text: str, generation: int) -> str:
    """Return the text as an editor document: Lexical in the first composers, ProseMirror later."""
    if generation >= 3:
        paragraph: Sequence[Mapping[str, Any]] = [
            {"type": "paragraph", "content": [{"type": "text", "text": text}]}
        ]
        return dumps({"type": "doc", "content": paragraph})
    leaf = {
        "detail": 0,
        "format": 0,
        "mode": "normal",
        "style": "",
        "text": text,
        "type": "text",
        "version": 1,
    }
    paragraph = [{"children": [leaf], "format": "", "indent": 0, "type": "paragraph", "version": 1}]
    return dumps({"root": {"children": paragraph, "format": "", "indent": 0, "type": "root", "version": 1}})
