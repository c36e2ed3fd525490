"""A transcript as plain text, the oldest form: role lines, and marked lines for thinking and tools."""

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

_MARK = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*(.*)")
_PARAM = re.compile(r"\s+([\w.\-]+):\s?(.*)")
_ROLES = ("user:", "assistant:")
_HIDDEN = re.compile(r"\s*\[REDACTED\]\s*\Z")


class _Block(Struct):
    """A run of lines of one kind."""

    kind: str  # "user", "assistant", "Thinking", "Tool call", "Tool result", or "" before the first role
    name: str  # what follows the mark on its line
    line: int
    lines: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip("\n")


def read(path: Path, *, tally: RecordCounts) -> Iterator[Item]:
    """Every block of a transcript, each counted once."""
    calls = CallTracker()  # by the names of their tools, since they have no ids
    ids: dict[str, str] = {}
    batch = ""  # the first of calls that were made together
    prompted = RecordInfo("", Origin("", ""))
    for block in _blocks(path):
        place = replace(prompted, id=f"line-{block.line}", origin=Origin(str(path), f"line {block.line}"))
        told: Message | ToolResult | None
        if block.kind == "user":
            told = _user(block, place)
            if told is not None and told.timestamp is not None:
                prompted = replace(prompted, timestamp=told.timestamp, timestamp_source="turn")
        elif block.kind == "Tool result" and (call := calls.answer(block.name, block.text)) is not None:
            told = ToolResult(tool_call_id=ids[call.id], result=block.text, origin=place.origin)
        else:
            told = _message(block, place)
        if block.kind == "Tool call":
            batch = batch or place.id
            ids[calls.make(block.name, batch) or ""] = place.id
        else:
            batch = ""
        if told is not None:
            yield told
        tally.count(f"text ({block.kind or 'before the first role'})", "parsed" if told else "ignored")


def _blocks(path: Path) -> Iterator[_Block]:
    quoted = _lines_in_queries(path)
    block = _Block("", "", 1, [])
    with path.open(encoding="utf-8", errors="replace", newline=None) as file:
        for number, raw in enumerate(file, start=1):
            line = raw.rstrip("\n").removeprefix("\ufeff")
            mark = _MARK.match(line) if block.kind not in ("", "user") else None
            if line.rstrip() in _ROLES and number not in quoted:
                opened = _Block(line.rstrip()[:-1], "", number, [])
            elif mark is not None:
                opened = _Block(mark[1], mark[2].strip(), number, [])
            elif line.strip() and not line[:1].isspace() and _is_over(block):
                opened = _Block("assistant", "", number, [line])
            else:
                block.lines.append(line)
                continue
            if _is_worth_counting(block):
                yield block
            block = opened
    if _is_worth_counting(block):
        yield block


def _lines_in_queries(path: Path) -> set[int]:
    """Lines that look like a role's and are part of what a person pasted into a prompt."""
    found: set[int] = set()
    waiting: list[int] | None = None  # since a mark opened that nothing has closed yet
    with path.open(encoding="utf-8", errors="replace", newline=None) as file:
        for number, line in enumerate(file, start=1):
            if "<user_query>" in line:
                waiting = []
            if "</user_query>" in line:
                found.update(waiting or ())
                waiting = None
            elif waiting is not None and line.rstrip() in _ROLES:
                waiting.append(number)
    return found


def _is_over(block: _Block) -> bool:
    """Whether a line without indentation no longer belongs: arguments are indented, results begin at once."""
    if block.kind == "Tool result":
        return bool(block.lines) and not block.text.strip()
    return block.kind == "Tool call"


def _is_worth_counting(block: _Block) -> bool:
    return bool(block.kind or block.text.strip())


def _user(block: _Block, place: RecordInfo) -> Message | None:
    prompt = parse_prompt(block.text)
    if prompt.at is not None:
        place = replace(place, timestamp=prompt.at, timestamp_source="stored")
    if prompt.is_context:
        return (
            build_message(place, "system", block.text.strip(), kind="context") if block.text.strip() else None
        )
    kind = "synthetic" if is_injected(prompt.text) else None
    return build_message(place, "user", prompt.text, kind=kind, attachments=prompt.attachments)


def _message(block: _Block, place: RecordInfo) -> Message | None:
    text = _HIDDEN.sub("", block.text).strip()
    match block.kind:
        case "Thinking":
            thought = "\n".join(filter(None, (block.name, text)))
            return build_message(place, "thinking", thought) if thought else None
        case "Tool call":
            params = _params(block)
            tool = ToolCall(place.id, block.name or "unknown", params, edits=parse_edits(block.name, params))
            return build_message(place, "tool", "", tool=tool)
        case "Tool result":
            tool = ToolCall(None, block.name or "unknown", result=block.text, status="completed")
            return build_message(place, "tool", "", tool=tool)
        case "assistant" if text:
            return build_message(place, "assistant", text)
        case "" if text:
            return build_message(place, "system", text, kind="context")
    return None


def _params(block: _Block) -> dict[str, Any]:
    """Indented ``name: value`` lines, or JSON; a line that is neither goes on with the value before it."""
    whole = decode_nested_json(block.text.strip())
    if isinstance(whole, dict):
        return whole
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
