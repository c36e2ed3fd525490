"""A tool call in a line, and what of it is worth showing in full.

Tools are many and come and go, so nothing here knows one by name: a call is
described by the argument that says most.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from backscroll.model import ToolCall
from backscroll.model.sanitize import one_line, sanitize

__all__ = ["argument_lines", "call_outcome", "describe_call", "exit_status"]

# The arguments that say what a call is about, the most telling first.
_TELLING = (
    "command", "cmd", "file_path", "filePath", "target_file", "targetFile", "relative_workspace_path",
    "relativeWorkspacePath", "notebook_path", "path", "description", "pattern", "query", "regex",
    "glob_pattern", "globPattern", "glob", "url", "skill", "prompt", "title", "name", "target_directory",
    "targetDirectory", "question", "id",
)  # fmt: skip
_TELLING_PARTS = ("command", "path", "file", "query", "pattern", "url")
# How the tools write down with what a command ended: above what it printed, or below.
_EXIT = re.compile(r"\s*(?:Error: )?Exit code:? (\d+)\b")
_EXIT_BELOW = re.compile(r"\[exit code (\d+)\]\s*\Z")
_END = 40


def describe_call(tool: ToolCall, width: int = 100) -> str:
    """What the call is about, without its name; empty when its arguments do not say."""
    for key in _TELLING:
        value = tool.params.get(key)
        if isinstance(value, str) and value.strip():
            return one_line(value, width)
    for key, value in tool.params.items():
        if isinstance(value, str) and value.strip() and any(part in key.lower() for part in _TELLING_PARTS):
            return one_line(value, width)
    if tool.edits:
        return one_line(", ".join(edit.path for edit in tool.edits), width)
    return ""


def exit_status(tool: ToolCall) -> int | None:
    """With what a command ended, where its result says so."""
    result = tool.result or ""
    found = _EXIT.match(result) or _EXIT_BELOW.search(result[-_END:])
    return int(found[1]) if found is not None else None


def call_outcome(tool: ToolCall) -> str:
    """How it ended and what a person made of it, where that is not the usual."""
    words: list[str] = [] if tool.status == "completed" else [tool.status]
    if (status := exit_status(tool)) is not None:
        words.append(f"exit {status}")
    if tool.decision in ("rejected", "modified"):
        words.append(tool.decision)
    added, removed = sum(edit.added for edit in tool.edits), sum(edit.removed for edit in tool.edits)
    if added or removed:
        words.append(f"+{added:,} −{removed:,}")
    if tool.result and not tool.edits:
        lines = tool.result.count("\n") + (not tool.result.endswith("\n"))
        words.append("1 line" if lines == 1 else f"{lines:,} lines")
    return ", ".join(words)


def argument_lines(tool: ToolCall) -> Iterator[str]:
    """Every argument by name; a text of several lines as these lines, indented."""
    for key, value in tool.params.items():
        text = sanitize(value) if isinstance(value, str) else sanitize(_encoded(value))
        name = one_line(key, 100)
        if "\n" not in text:
            yield f"{name}: {text}"
            continue
        yield f"{name}:"
        yield from (f"  {line}" for line in text.split("\n"))


def _encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()
