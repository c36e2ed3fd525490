"""JSON messages as the model receives them. The first field of a graph's root contains their ids."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.cursor.messages import Message, Tool

# Location of tool calls: parts of the content, or a separate field as in the OpenAI API.
Style: TypeAlias = Literal["parts", "openai"]


def opening_prompts(folder: str) -> list[dict[str, Any]]:
    """Return the messages before the first prompt."""
    user_info = f"<user_info>\nOS: linux\nWorkspace Path: {folder}\n</user_info>"
    return [
        {"role": "system", "content": "You are a coding assistant."},
        {"role": "user", "content": user_info},
    ]


def split_turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Split messages into turns. Every turn except the first starts with a user message."""
    out: list[list[Message]] = []
    for message in messages:
        if message.role == "user" or not out:
            out.append([])
        out[-1].append(message)
    return out


def turn_prompts(turn: Sequence[Message], *, style: Style = "parts") -> Iterator[dict[str, Any]]:
    """Yield the JSON messages of one turn: prompt, responses and tool results."""
    pending: list[Message] = []
    for message in turn:
        if message.role == "user":
            yield _user_prompt(message)
            continue
        if pending and pending[-1].tool is not None and message.tool is None:
            yield from _response_prompts(pending, style)
            pending = []
        pending.append(message)
    if pending:
        yield from _response_prompts(pending, style)


def _user_prompt(message: Message) -> dict[str, Any]:
    if message.is_simulated:
        return {
            "role": "user",
            "content": [{"type": "text", "text": f"<system_reminder>\n{message.text}\n</system_reminder>"}],
        }
    parts = [{"type": "text", "text": f"<user_query>\n{message.text}\n</user_query>"}]
    for image in message.fields.get("images", ()):
        parts.append({"type": "image", "image": f"picture {image['uuid']}", "mimeType": "image/png"})
    return {"role": "user", "content": parts}


def _response_prompts(messages: Sequence[Message], style: Style) -> Iterator[dict[str, Any]]:
    yield assistant_prompt(messages, style=style)
    for message in messages:
        if message.tool is not None and (result := _tool_prompt(message.tool, style)) is not None:
            yield result


def assistant_prompt(messages: Iterable[Message], *, style: Style = "parts") -> dict[str, Any]:
    """Return a response of the model. Every response has the id "1"."""
    parts: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for message in messages:
        if message.thinking is not None:
            parts.append(_reasoning(message.thinking))
        if message.text:
            parts.append({"type": "text", "text": message.text})
        if message.tool is None:
            continue
        call = message.tool
        if style == "openai":
            function = {"name": call.name, "arguments": dumps(dict(call.params))}
            calls.append({"id": call.call_id, "type": "function", "function": function})
        else:
            call_part = {"toolCallId": call.call_id, "toolName": call.name, "args": dict(call.params)}
            parts.append({"type": "tool-call", **call_part})
    record = {"role": "assistant", "id": "1", "content": parts}
    return record | {"tool_calls": calls} if calls else record


def _reasoning(value: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "reasoning", "text": thinking_text(value)}
    if isinstance(value, dict):
        # Older builds do not store the model.
        part["providerOptions"] = {"cursor": {"modelName": "model-x-high"}}
        part["signature"] = value.get("signature", "")
    return part


def thinking_text(value: Any) -> str:
    """Return the text of a thinking bubble in any encoding."""
    if isinstance(value, dict):
        return str(value.get("text", ""))
    if value.startswith("{"):
        return str(json.loads(value)["text"])
    return str(value)


def _tool_prompt(tool: Tool, style: Style) -> dict[str, Any] | None:
    if tool.result is None and tool.error is None and not tool.fields:
        return None
    result = tool.result
    part: dict[str, Any] = {"type": "tool-result", "toolCallId": tool.call_id, "toolName": tool.name}
    if tool.error is not None:
        error = tool.error
        result = error.get("clientVisibleErrorMessage") if isinstance(error, dict) else error
        part["isError"] = True
    if style == "openai":
        text = result if isinstance(result, str) else dumps(result)
        return {"role": "tool", "tool_call_id": tool.call_id, "content": text}
    if result is not None:
        part["result"] = result
        if isinstance(result, str):
            part["experimental_content"] = [{"type": "text", "text": result}]
    return {"role": "tool", "id": tool.call_id, "content": [part | dict(tool.fields)]}
