"""Messages as Cursor wrote them in each generation: chat tabs, inline bubbles, bubble rows."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from backscroll.testing.cursor.messages import Message, Spelling, Tool
from backscroll.testing.cursor.tool_calls import number

__all__ = ["bubble", "bubble_header", "dumps", "inline_bubble", "iso", "tab_bubble", "tool_data"]

# State of the editor that every bubble drags along, nearly always empty.
_LUGGAGE = (
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
    """JSON the way Cursor writes it: compact, in its own order, not escaped."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def iso(at: int) -> str:
    """Milliseconds as the ISO text that bubbles carry."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def tool_data(tool: Tool, *, at: int, index: int = 0) -> dict[str, Any]:
    """The record of a tool call, the same on a bubble and in the bubble map of an inline conversation."""
    params = dict(tool.params)
    data: dict[str, Any] = {
        "tool": number(tool.name) if tool.number is None else tool.number,
        "toolIndex": index,
        "modelCallId": "",
        "toolCallId": tool.call_id,
        "name": tool.name,
        "status": tool.status,
        "rawArgs": dumps(params) if tool.has_raw_args else "",
        "params": _spelled(params, tool.spelling),
    }
    if tool.result is not None:
        plain = isinstance(tool.result, str) and tool.spelling != "double"
        data["result"] = tool.result if plain else _spelled(tool.result, tool.spelling)
    if tool.error is not None:
        data["error"] = tool.error if isinstance(tool.error, str) else _spelled(tool.error, tool.spelling)
    if tool.decision is not None:
        data["userDecision"] = tool.decision
    outcome = {"completed": "success", "error": "error"}.get(tool.status, tool.status)
    data["additionalData"] = {"status": outcome, "startedAtMs": at, **tool.additional}
    return data | dict(tool.fields)


def _spelled(value: Any, spelling: Spelling) -> Any:
    match spelling:
        case "object":
            return value
        case "json":
            return dumps(value)
        case "double":
            return dumps(dumps(value))


def bubble(message: Message, *, id: str, at: int, generation: int, version: int = 3) -> dict[str, Any]:
    """A bubble row's value. Version 2 carries no time."""
    is_user = message.role == "user"
    record: dict[str, Any] = {"_v": version, "bubbleId": id, "type": 1 if is_user else 2}
    if version >= 3:
        record["createdAt"] = iso(at)
    elif not is_user:
        record["timingInfo"] = _timing(at, 1234 if at // 10_000 % 2 else None)
    record["text"] = message.text
    if is_user and message.text:
        record["richText"] = _rich_text(message.text, generation)
    record |= {name: [] for name in _LUGGAGE}
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
    """The entry that names a bubble in its composer's list."""
    header: dict[str, Any] = {"bubbleId": id, "type": 1 if message.role == "user" else 2}
    if generation == 2 and message.role == "assistant":
        header["serverBubbleId"] = f"s-{id}"
    if generation >= 3:
        header["createdAt"] = iso(at)
        header["grouping"] = _grouping(message)
    return header | dict(message.header)


def _grouping(message: Message) -> dict[str, Any]:
    shown = bool(message.text or message.thinking or message.tool or message.fields)
    grouping: dict[str, Any] = {"isRenderable": shown}
    if message.text:
        grouping |= {"hasText": True, "textPreview": message.text[:80]}
    if message.thinking is not None:
        grouping |= {"hasThinking": True, "thinkingDurationMs": 900}
    if "capabilityType" in message.fields:
        grouping["capabilityType"] = message.fields["capabilityType"]
    if message.tool is not None:
        grouping |= {
            "capabilityType": 15,
            "toolFormerTool": number(message.tool.name),
            "toolFormerStatus": message.tool.status,
            "toolCallId": message.tool.call_id,
        }
    return grouping


def inline_bubble(message: Message, *, id: str, at: int, clock: int | None = None) -> dict[str, Any]:
    """A bubble inside a composer's own ``conversation``: no version, no time of its own.

    ``clock`` is the reading of the performance clock that some builds wrote
    where the start time belongs.
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
    """A bubble of the chat panel, from before there were composers."""
    if message.role == "user":
        record: dict[str, Any] = {"type": "user", "id": id, "text": message.text, "selections": []}
    else:
        record = {"type": "ai", "id": id, "rawText": message.text, "modelType": "model-y"}
    return record | dict(message.fields)


def _rich_text(text: str, generation: int) -> str:
    """The editor's own document: Lexical in the first composers, ProseMirror later."""
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
