"""Parse a plain-text transcript, the oldest format: role lines, and tagged lines for thinking and tools."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model import Item, Message, Origin, RecordCounts, ToolCall, ToolResult
from backscroll.sources.cursor_graph.edits import parse_edits
from backscroll.sources.cursor_graph.message_parts import RecordInfo, build_message
from backscroll.sources.cursor_graph.pending_calls import CallTracker
from backscroll.sources.cursor_graph.prompt_text import is_injected, parse_prompt
from backscroll.sources.cursor_graph.tool_calls import decode_nested_json

__all__ = ["read"]

_TAG = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*(.*)")
_PARAM = re.compile(r"\s+([\w.\-]+):\s?(.*)")
_ROLE_LINES = ("user:", "assistant:")
_THINKING_PLACEHOLDER = re.compile(r"\s*\[REDACTED\]\s*\Z")


class _Block(Struct):
    """A run of lines of one kind."""

    kind: str  # "user", "assistant", "Thinking", "Tool call", "Tool result", or "" before the first role
    name: str  # the text after the tag: name of a tool, or thinking
    line_number: int
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")


def read(path: Path, *, counts: RecordCounts) -> Iterator[Item]:
    """Parse a transcript. Every block is counted once."""
    calls = CallTracker()  # by tool name, because the calls have no ids
    message_ids: dict[str, str] = {}  # of the messages with calls, by call id
    batch_id = ""  # message id of the first call in a row of calls
    turn_info = RecordInfo("", Origin("", ""))  # has the time of the last prompt
    for block in _blocks(path):
        info = replace(
            turn_info, id=f"line-{block.line_number}", origin=Origin(str(path), f"line {block.line_number}")
        )
        item: Message | ToolResult | None
        if block.kind == "user":
            item = _parse_user_block(block, info)
            if item is not None and item.timestamp is not None:
                turn_info = replace(turn_info, timestamp=item.timestamp, timestamp_source="turn")
        elif block.kind == "Tool result" and (call := calls.add_result(block.name, block.text)) is not None:
            item = ToolResult(tool_call_id=message_ids[call.id], result=block.text, origin=info.origin)
        else:
            item = _parse_block(block, info)
        if block.kind == "Tool call":
            batch_id = batch_id or info.id
            message_ids[calls.add_call(block.name, batch_id) or ""] = info.id
        else:
            batch_id = ""
        if item is not None:
            yield item
        counts.count(f"text ({block.kind or 'before the first role'})", "parsed" if item else "ignored")


def _blocks(path: Path) -> Iterator[_Block]:
    """Split a transcript into blocks. An empty block before the first role is omitted."""
    quoted_lines = _role_lines_in_prompts(path)
    block = _Block("", "", 1, [])
    with path.open(encoding="utf-8", errors="replace", newline=None) as file:
        for line_number, raw in enumerate(file, start=1):
            line = raw.rstrip("\n").removeprefix("\ufeff")
            tag = _TAG.match(line) if block.kind not in ("", "user") else None
            if line.rstrip() in _ROLE_LINES and line_number not in quoted_lines:
                next_block = _Block(line.rstrip()[:-1], "", line_number, [])
            elif tag is not None:
                next_block = _Block(tag[1], tag[2].strip(), line_number, [])
            elif line.strip() and not line[:1].isspace() and _ends_at_unindented_line(block):
                next_block = _Block("assistant", "", line_number, [line])
            else:
                block.lines.append(line)
                continue
            if block.kind or block.text.strip():
                yield block
            block = next_block
    if block.kind or block.text.strip():
        yield block


def _role_lines_in_prompts(path: Path) -> set[int]:
    """Return the numbers of lines that look like a role but are part of a typed prompt."""
    found: set[int] = set()
    in_query: list[int] | None = None  # role lines since the last opening tag; None outside of tags
    with path.open(encoding="utf-8", errors="replace", newline=None) as file:
        for line_number, line in enumerate(file, start=1):
            if "<user_query>" in line:
                in_query = []
            if "</user_query>" in line:
                found.update(in_query or ())
                in_query = None
            elif in_query is not None and line.rstrip() in _ROLE_LINES:
                in_query.append(line_number)
    return found


def _ends_at_unindented_line(block: _Block) -> bool:
    """Return whether an unindented line ends the block.

    Arguments are indented. A result starts on the first line after its tag, or it is empty.
    """
    if block.kind == "Tool result":
        return bool(block.lines) and not block.text.strip()
    return block.kind == "Tool call"


def _parse_user_block(block: _Block, info: RecordInfo) -> Message | None:
    prompt = parse_prompt(block.text)
    if prompt.at is not None:
        info = replace(info, timestamp=prompt.at, timestamp_source="stored")
    if prompt.is_context:
        text = block.text.strip()
        return build_message(info, "system", text, kind="context") if text else None
    kind = "synthetic" if is_injected(prompt.text) else None
    return build_message(info, "user", prompt.text, kind=kind, attachments=prompt.attachments)


def _parse_block(block: _Block, info: RecordInfo) -> Message | None:
    text = _THINKING_PLACEHOLDER.sub("", block.text).strip()
    match block.kind:
        case "Thinking":
            thinking = "\n".join(filter(None, (block.name, text)))
            return build_message(info, "thinking", thinking) if thinking else None
        case "Tool call":
            params = _parse_params(block)
            tool = ToolCall(info.id, block.name or "unknown", params, edits=parse_edits(block.name, params))
            return build_message(info, "tool", "", tool=tool)
        case "Tool result":
            tool = ToolCall(None, block.name or "unknown", result=block.text, status="completed")
            return build_message(info, "tool", "", tool=tool)
        case "assistant" if text:
            return build_message(info, "assistant", text)
        case "" if text:
            return build_message(info, "system", text, kind="context")
    return None


def _parse_params(block: _Block) -> dict[str, Any]:
    """Parse JSON, or indented ``name: value`` lines. Any other line continues the value before it."""
    decoded = decode_nested_json(block.text.strip())
    if isinstance(decoded, dict):
        return decoded
    params: dict[str, Any] = {}
    last = ""
    for line in block.lines:
        found = _PARAM.match(line)
        if found is not None:
            last = found[1]
            params[last] = found[2]
        elif last:
            params[last] = f"{params[last]}\n{line.strip()}" if line.strip() else params[last]
        elif line.strip():
            params["raw"] = f"{params['raw']}\n{line.strip()}" if "raw" in params else line.strip()
    return params
