"""File changes of a tool call: removed and added lines."""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Literal

from backscroll.model import Edit, Hunk
from backscroll.sources.cursor.database.decode import as_int, as_list, as_map, as_text
from backscroll.sources.cursor.uri import file_path

__all__ = ["from_code", "from_code_diff", "from_params", "from_result", "is_edit_tool", "target_path"]

_EDIT_TOOL = re.compile(r"edit|replace|write|patch|create_file|notebook|reapply|^delete", re.IGNORECASE)
_DELETE_TOOL = re.compile(r"^delete", re.IGNORECASE)
_PATH_KEYS = (
    "target_file",
    "targetFile",
    "file_path",
    "filePath",
    "relativeWorkspacePath",
    "effectiveUri",
    "path",
    "target_notebook",
    "uri",
)
_OLD_TEXT_KEYS = ("old_string", "oldString", "old_str", "oldText")
_NEW_TEXT_KEYS = ("new_string", "newString", "new_str", "newText")
_FULL_TEXT_KEYS = ("contents", "content", "code_edit", "codeEdit", "streamingContent", "file_text")
_PATCH_HEADING = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$")


def is_edit_tool(name: str) -> bool:
    """Return whether a tool with this name changes files."""
    return _EDIT_TOOL.search(name) is not None


def target_path(params: dict[str, Any]) -> str:
    """Return the file in the arguments of a call. It is absolute even in ``relativeWorkspacePath``."""
    for name in _PATH_KEYS:
        value = params.get(name)
        if isinstance(value, str) and value:
            return file_path(value) or value
        if isinstance(value, dict) and (path := file_path(value)):
            return path
    return ""


def from_result(path: str, result: Any) -> tuple[Edit, ...]:
    """Return the change from the result of the tool."""
    fields = as_map(result)
    diff = as_map(fields.get("diff"))
    chunks = [as_map(chunk) for chunk in as_list(diff.get("chunks"))]
    if not path or not chunks or fields.get("applyFailed"):
        return ()
    hunks = tuple(hunk for chunk in chunks for hunk in _parse_chunk(chunk))
    if hunks:
        return (Edit(path, hunks),)
    added = sum(as_int(chunk.get("linesAdded")) or 0 for chunk in chunks)
    removed = sum(as_int(chunk.get("linesRemoved")) or 0 for chunk in chunks)
    return (Edit(path, (), "update", added, removed),) if added or removed else ()


def _split_lines(text: str) -> list[str]:
    """Split text at newlines only, not at form feeds or Unicode separators."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _parse_chunk(chunk: dict[str, Any]) -> Iterator[Hunk]:
    """Yield the changes of a chunk, one per run of changed lines. Context lines count for the numbers."""
    lines = [line for line in _split_lines(as_text(chunk.get("diffString"))) if line[:1] in ("-", "+", " ")]
    prefix_chars = 2 if _has_separator(lines) else 1
    old, new = as_int(chunk.get("oldStart")), as_int(chunk.get("newStart"))
    for is_context, group in groupby(lines, key=lambda line: line[0] == " "):
        run = list(group)
        removed = tuple(line[prefix_chars:] for line in run if line[0] == "-")
        added = tuple(line[prefix_chars:] for line in run if line[0] == "+")
        if not is_context:
            yield Hunk(removed, added, old, new)
        old = None if old is None else old + (len(run) if is_context else len(removed))
        new = None if new is None else new + (len(run) if is_context else len(added))


def _has_separator(lines: list[str]) -> bool:
    """Return whether a space separates the sign from the line, as some builds write it.

    If every line has a space, it may also be indentation. Code is indented by an even number of spaces, so an
    odd minimum means a separator.
    """
    indents = [len(line) - 1 - len(line[1:].lstrip(" ")) for line in lines if line[1:].strip()]
    return bool(indents) and min(indents) % 2 == 1


def from_code_diff(path: str, record: Any) -> tuple[Edit, ...]:
    """Return the change from a ``codeBlockDiff`` row. Only the numbers of removed lines are known."""
    fields = as_map(record)
    earlier = {_parse_change(item) for item in as_list(fields.get("originalModelDiffWrtV0"))}
    hunks: list[Hunk] = []
    removed = 0
    for item in as_list(fields.get("newModelDiffWrtV0")):
        change = _parse_change(item)
        if change in earlier:
            continue  # made by an earlier edit of the same session
        start, end, lines = change
        removed += max(0, (end or 0) - (start or 0))
        hunks.append(Hunk((), lines, start, None))
    added = sum(len(hunk.added) for hunk in hunks)
    return (Edit(path, tuple(hunks), "update", added, removed),) if path and hunks else ()


def _parse_change(record: Any) -> tuple[int | None, int | None, tuple[str, ...]]:
    """Return the first line, the line after the last, and the new lines of a change."""
    span = as_map(as_map(record).get("original"))
    lines = tuple(line for line in as_list(as_map(record).get("modified")) if isinstance(line, str))
    return as_int(span.get("startLineNumber")), as_int(span.get("endLineNumberExclusive")), lines


def from_code(path: str, text: str) -> tuple[Edit, ...]:
    """Return the change from proposed code, which has only the new lines."""
    return (Edit(path, (Hunk((), tuple(_split_lines(text))),)),) if path and text else ()


def from_params(name: str, path: str, params: dict[str, Any]) -> tuple[Edit, ...]:
    """Return the change from the arguments of an editing tool."""
    if _DELETE_TOOL.search(name):
        return (Edit(path, (), "delete"),) if path else ()
    patch = next(
        (text for key in ("patch", "input", "raw") if "*** " in (text := as_text(params.get(key)))), ""
    )
    if patch:
        return tuple(_parse_patch(patch))
    if not path:
        return ()
    changes = as_list(params.get("edits")) or [params]
    hunks = tuple(hunk for change in changes if (hunk := _replacement_hunk(as_map(change))))
    if hunks:
        return (Edit(path, hunks),)
    text = next((text for key in _FULL_TEXT_KEYS if (text := as_text(params.get(key)))), "")
    return from_code(path, text)


def _replacement_hunk(change: dict[str, Any]) -> Hunk | None:
    old = next((text for key in _OLD_TEXT_KEYS if (text := as_text(change.get(key)))), "")
    new = next((text for key in _NEW_TEXT_KEYS if (text := as_text(change.get(key)))), "")
    return Hunk(tuple(_split_lines(old)), tuple(_split_lines(new))) if old or new else None


def _parse_patch(patch: str) -> Iterator[Edit]:
    """Parse a patch with ``*** Update File`` headings, the format that models write."""
    kinds: dict[str, Literal["create", "update", "delete"]] = {
        "Add": "create",
        "Update": "update",
        "Delete": "delete",
    }
    path = ""
    kind: Literal["create", "update", "delete"] = "update"
    hunks: list[Hunk] = []
    removed: list[str] = []
    added: list[str] = []

    def finish_hunk() -> None:
        if removed or added:
            hunks.append(Hunk(tuple(removed), tuple(added)))
            removed.clear()
            added.clear()

    for line in _split_lines(patch):
        if heading := _PATCH_HEADING.match(line):
            finish_hunk()
            if path:
                yield Edit(path, tuple(hunks), kind)
            path, kind, hunks = heading[2].strip(), kinds[heading[1]], []
        elif line.startswith("-"):
            removed.append(line[1:])
        elif line.startswith("+"):
            added.append(line[1:])
        else:
            finish_hunk()
    finish_hunk()
    if path:
        yield Edit(path, tuple(hunks), kind)
