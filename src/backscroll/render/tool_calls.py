"""Descriptions of tool calls: subject, outcome, arguments, and edits as unified diffs.

No tool is known by name, because tools come and go. A call is described by its most informative argument.
"""

import re
from collections.abc import Iterator

import msgspec

from backscroll.model.message import Edit, Hunk, ToolCall
from backscroll.model.text import one_line, pluralize, sanitize

# Arguments that describe a call, the most informative first.
_SUBJECT_PARAMS = (
    "command", "cmd", "file_path", "filePath", "target_file", "targetFile", "relative_workspace_path",
    "relativeWorkspacePath", "notebook_path", "path", "description", "pattern", "query", "regex",
    "glob_pattern", "globPattern", "glob", "url", "skill", "prompt", "title", "name", "target_directory",
    "targetDirectory", "question", "id",
)  # fmt: skip
_PATH_PARAMS = (
    "file_path", "filePath", "target_file", "targetFile", "relative_workspace_path", "relativeWorkspacePath",
    "notebook_path", "path",
)  # fmt: skip
_SUBJECT_PARAM_PARTS = ("command", "path", "file", "query", "pattern", "url")
_COMMAND_PARAMS = ("command", "cmd")
# The tools write the exit code before or after the output of a command.
# Compiled on first use.
_EXIT_CODE_BEFORE = r"\s*(?:Error: )?Exit code:? (\d+)\b"
_EXIT_CODE_AFTER = r"\[exit code (\d+)\]\s*\Z"
_EXIT_CODE_CHARS = 40  # at the end of the output
_MAX_PATH_CHARS = 1000


def describe_call(tool: ToolCall, width: int = 100) -> str:
    """Return the subject of a call, without the tool's name; empty if no argument describes it."""
    for key in _SUBJECT_PARAMS:
        value = tool.params.get(key)
        if isinstance(value, str) and value.strip():
            return one_line(value, width)
    for key, value in tool.params.items():
        is_subject = any(part in key.lower() for part in _SUBJECT_PARAM_PARTS)
        if isinstance(value, str) and value.strip() and is_subject:
            return one_line(value, width)
    if tool.edits:
        return one_line(", ".join(edit.path for edit in tool.edits), width)
    return ""


def command_param(tool: ToolCall) -> str | None:
    """Return the name of the argument that contains a shell command, if there is one."""
    return next((key for key in _COMMAND_PARAMS if isinstance(tool.params.get(key), str)), None)


def path_param(tool: ToolCall) -> str | None:
    """Return the path of the file that a call is about, if it has one."""
    return next(path_params(tool), None)


def path_params(tool: ToolCall) -> Iterator[str]:
    """Return the paths that a call has as arguments."""
    values = (tool.params.get(key) for key in _PATH_PARAMS)
    return (value for value in values if isinstance(value, str) and value)


def exit_status(tool: ToolCall) -> int | None:
    """Return the exit code of a command, if its result contains it."""
    result = tool.result or ""
    found = re.match(_EXIT_CODE_BEFORE, result) or re.search(_EXIT_CODE_AFTER, result[-_EXIT_CODE_CHARS:])
    return int(found[1]) if found is not None else None


def call_outcome(tool: ToolCall, *, with_size: bool = True) -> str:
    """Return status, user decision and size of the result, where they are not the usual ones."""
    parts: list[str] = [] if tool.status == "completed" else [tool.status]
    if (status := exit_status(tool)) is not None:
        parts.append(f"exit {status}")
    if tool.decision in ("rejected", "modified"):
        parts.append(tool.decision)
    added, removed = sum(edit.added for edit in tool.edits), sum(edit.removed for edit in tool.edits)
    if added or removed:
        parts.append(f"+{added:,} −{removed:,}")
    if with_size and tool.result and not tool.edits:
        lines = tool.result.count("\n") + (not tool.result.endswith("\n"))
        parts.append(pluralize(lines, "line"))
    return ", ".join(parts)


def argument_lines(tool: ToolCall, *, without: str | None = None) -> Iterator[str]:
    """Yield every argument but one with its name; a text of several lines follows indented."""
    for key, value in tool.params.items():
        if key == without:
            continue
        text = sanitize(value if isinstance(value, str) else msgspec.json.encode(value).decode())
        name = one_line(key, 100)
        if "\n" not in text:
            yield f"{name}: {text}"
            continue
        yield f"{name}:"
        yield from (f"  {line}" for line in text.split("\n"))


def diff_lines(edit: Edit) -> Iterator[str]:
    """Yield the lines of a unified diff; none if the tool stored no changed lines.

    ``@@`` has no line numbers if the tool did not store them.
    """
    hunks = [hunk for hunk in edit.hunks if hunk.removed or hunk.added]
    if not hunks:
        return
    path = one_line(edit.path, _MAX_PATH_CHARS)
    yield "--- /dev/null" if edit.kind == "create" else f"--- {path}"
    yield "+++ /dev/null" if edit.kind == "delete" else f"+++ {path}"
    for hunk in hunks:
        yield _hunk_header(hunk)
        yield from (f"-{single_line(line)}" for line in hunk.removed)
        yield from (f"+{single_line(line)}" for line in hunk.added)


def _hunk_header(hunk: Hunk) -> str:
    if hunk.old_start is None and hunk.new_start is None:
        return "@@ @@"
    old = hunk.old_start if hunk.old_start is not None else hunk.new_start
    new = hunk.new_start if hunk.new_start is not None else hunk.old_start
    return f"@@ -{_range(old, len(hunk.removed))} +{_range(new, len(hunk.added))} @@"


def _range(start: int | None, count: int) -> str:
    """Return a range of lines. A range without lines has the number of the line before it."""
    first = start or 1
    return f"{first if count else max(first - 1, 0)},{count}"


def single_line(line: str) -> str:
    """Return a line of a file without characters that would end it."""
    return sanitize(line).replace("\n", " ")
