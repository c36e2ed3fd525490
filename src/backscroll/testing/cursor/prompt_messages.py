"""Messages as the model behind Cursor sees them: the JSON that the blob graph's first field names."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

from backscroll.testing.cursor.bubbles import dumps
from backscroll.testing.cursor.messages import Message, Tool

__all__ = ["Style", "assistant_prompt", "opening_prompts", "prompts", "thought", "turns"]

# How tool calls are written: as parts of the content, or beside it as OpenAI's interface has them.
Style: TypeAlias = Literal["parts", "openai"]


def opening_prompts(folder: str) -> list[dict[str, Any]]:
    """What stands before the first thing anybody said."""
    about = f"<user_info>\nOS: linux\nWorkspace Path: {folder}\n</user_info>"
    return [
        {"role": "system", "content": "You are a coding assistant."},
        {"role": "user", "content": about},
    ]


def turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Split at every user message; only the first turn can be without one."""
    out: list[list[Message]] = []
    for message in messages:
        if message.role == "user" or not out:
            out.append([])
        out[-1].append(message)
    return out


def prompts(turn: Sequence[Message], *, style: Style = "parts") -> Iterator[dict[str, Any]]:
    """The JSON messages of one turn: the prompt, the answers, the results of tools."""
    said: list[Message] = []
    for message in turn:
        if message.role == "user":
            yield _user_prompt(message)
            continue
        if said and said[-1].tool is not None and message.tool is None:
            yield from _answer(said, style)
            said = []
        said.append(message)
    if said:
        yield from _answer(said, style)


def _user_prompt(message: Message) -> dict[str, Any]:
    if message.is_simulated:
        return {
            "role": "user",
            "content": [{"type": "text", "text": f"<system_reminder>\n{message.text}\n</system_reminder>"}],
        }
    parts = [{"type": "text", "text": f"<user_query>\n{message.text}\n</user_query>"}]
    for picture in message.fields.get("images", ()):
        parts.append({"type": "image", "image": f"picture {picture['uuid']}", "mimeType": "image/png"})
    return {"role": "user", "content": parts}


def _answer(said: Sequence[Message], style: Style) -> Iterator[dict[str, Any]]:
    yield assistant_prompt(said, style=style)
    for message in said:
        if message.tool is not None and (result := _tool_prompt(message.tool, style)) is not None:
            yield result


def assistant_prompt(said: Iterable[Message], *, style: Style = "parts") -> dict[str, Any]:
    """One answer of the model. Its id is "1", as every answer's is."""
    parts: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for message in said:
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
            named = {"toolCallId": call.call_id, "toolName": call.name, "args": dict(call.params)}
            parts.append({"type": "tool-call", **named})
    record = {"role": "assistant", "id": "1", "content": parts}
    return record | {"tool_calls": calls} if calls else record


def _reasoning(value: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "reasoning", "text": thought(value)}
    if isinstance(value, dict):
        # Newer builds note which model thought; older ones do not.
        part["providerOptions"] = {"cursor": {"modelName": "model-x-high"}}
        part["signature"] = value.get("signature", "")
    return part


def thought(value: Any) -> str:
    """The text of a thinking bubble, however it was spelled."""
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
        why = tool.error
        result = why.get("clientVisibleErrorMessage") if isinstance(why, dict) else why
        part["isError"] = True
    if style == "openai":
        text = result if isinstance(result, str) else dumps(result)
        return {"role": "tool", "tool_call_id": tool.call_id, "content": text}
    if result is not None:
        part["result"] = result
        if isinstance(result, str):
            part["experimental_content"] = [{"type": "text", "text": result}]
    return {"role": "tool", "id": tool.call_id, "content": [part | dict(tool.fields)]}
