"""What a tool call did to files: lines taken out and lines put in."""

import re
from collections.abc import Iterator
from typing import Any, Literal

from backscroll.model import Edit, Hunk
from backscroll.sources.cursor.database.decode import as_int, as_list, as_map, as_text
from backscroll.sources.cursor.uri import file_path

__all__ = ["from_answer", "from_code", "from_code_diff", "from_params", "is_editing", "target"]

_EDITING = re.compile(r"edit|replace|write|patch|create_file|notebook|reapply|^delete", re.IGNORECASE)
_DELETING = re.compile(r"^delete", re.IGNORECASE)
_TARGETS = (
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
_OLD = ("old_string", "oldString", "old_str", "oldText")
_NEW = ("new_string", "newString", "new_str", "newText")
_WHOLE = ("contents", "content", "code_edit", "codeEdit", "streamingContent", "file_text")
_PATCH_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$")


def is_editing(name: str) -> bool:
    """Whether a tool of this name changes files."""
    return _EDITING.search(name) is not None


def target(params: dict[str, Any]) -> str:
    """The file that a call's arguments name; absolute even where the field says relative."""
    for name in _TARGETS:
        value = params.get(name)
        if isinstance(value, str) and value:
            return file_path(value) or value
        if isinstance(value, dict) and (path := file_path(value)):
            return path
    return ""


def from_answer(path: str, answer: Any) -> tuple[Edit, ...]:
    """The change as the tool's answer tells it, chunk by chunk."""
    fields = as_map(answer)
    diff = as_map(fields.get("diff"))
    chunks = [as_map(chunk) for chunk in as_list(diff.get("chunks"))]
    if not path or not chunks or fields.get("applyFailed"):
        return ()
    hunks = tuple(_hunk(chunk) for chunk in chunks)
    if any(hunk.added or hunk.removed for hunk in hunks):
        return (Edit(path, hunks),)
    added = sum(as_int(chunk.get("linesAdded")) or 0 for chunk in chunks)
    removed = sum(as_int(chunk.get("linesRemoved")) or 0 for chunk in chunks)
    return (Edit(path, (), "update", added, removed),) if added or removed else ()


def _lines(text: str) -> list[str]:
    """Lines as files have them: a form feed or a Unicode separator ends none."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _hunk(chunk: dict[str, Any]) -> Hunk:
    lines = [line for line in _lines(as_text(chunk.get("diffString"))) if line[:1] in ("-", "+", " ")]
    width = 2 if _has_gap(lines) else 1
    return Hunk(
        tuple(line[width:] for line in lines if line[0] == "-"),
        tuple(line[width:] for line in lines if line[0] == "+"),
        as_int(chunk.get("oldStart")),
        as_int(chunk.get("newStart")),
    )


def _has_gap(lines: list[str]) -> bool:
    """Whether a space stands between sign and line, as some builds write it.

    Where every line has one it may also be indentation; code is indented by an even number of spaces, so that
    an odd number tells the gap.
    """
    depths = [len(line) - 1 - len(line[1:].lstrip(" ")) for line in lines if line[1:].strip()]
    return bool(depths) and min(depths) % 2 == 1


def from_code_diff(path: str, record: Any) -> tuple[Edit, ...]:
    """The change as a ``codeBlockDiff`` row tells it: which lines went is known by number, not by text."""
    fields = as_map(record)
    before = {_change(each) for each in as_list(fields.get("originalModelDiffWrtV0"))}
    hunks: list[Hunk] = []
    removed = 0
    for each in as_list(fields.get("newModelDiffWrtV0")):
        change = _change(each)
        if change in before:
            continue  # made by an earlier edit of the same session
        start, end, lines = change
        removed += max(0, (end or 0) - (start or 0))
        hunks.append(Hunk((), lines, start, None))
    added = sum(len(hunk.added) for hunk in hunks)
    return (Edit(path, tuple(hunks), "update", added, removed),) if path and hunks else ()


def _change(record: Any) -> tuple[int | None, int | None, tuple[str, ...]]:
    """Where it starts, where it ends, and the lines that stand there now."""
    span = as_map(as_map(record).get("original"))
    lines = tuple(line for line in as_list(as_map(record).get("modified")) if isinstance(line, str))
    return as_int(span.get("startLineNumber")), as_int(span.get("endLineNumberExclusive")), lines


def from_code(path: str, text: str) -> tuple[Edit, ...]:
    """A proposed piece of code of which only the new lines are known."""
    return (Edit(path, (Hunk((), tuple(_lines(text))),)),) if path and text else ()


def from_params(name: str, path: str, params: dict[str, Any]) -> tuple[Edit, ...]:
    """The change that a call of an editing tool asked for, as far as its arguments spell it out."""
    if _DELETING.search(name):
        return (Edit(path, (), "delete"),) if path else ()
    patch = next(
        (text for key in ("patch", "input", "raw") if "*** " in (text := as_text(params.get(key)))), ""
    )
    if patch:
        return tuple(_patched(patch))
    if not path:
        return ()
    changes = as_list(params.get("edits")) or [params]
    hunks = tuple(hunk for change in changes if (hunk := _replaced(as_map(change))))
    if hunks:
        return (Edit(path, hunks),)
    whole = next((text for key in _WHOLE if (text := as_text(params.get(key)))), "")
    return from_code(path, whole)


def _replaced(change: dict[str, Any]) -> Hunk | None:
    old = next((text for key in _OLD if (text := as_text(change.get(key)))), "")
    new = next((text for key in _NEW if (text := as_text(change.get(key)))), "")
    return Hunk(tuple(_lines(old)), tuple(_lines(new))) if old or new else None


def _patched(patch: str) -> Iterator[Edit]:
    """The files of a patch in the form that models write."""
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

    def turn() -> None:
        if removed or added:
            hunks.append(Hunk(tuple(removed), tuple(added)))
            removed.clear()
            added.clear()

    for line in _lines(patch):
        if heading := _PATCH_FILE.match(line):
            turn()
            if path:
                yield Edit(path, tuple(hunks), kind)
            path, kind, hunks = heading[2].strip(), kinds[heading[1]], []
        elif line.startswith("-"):
            removed.append(line[1:])
        elif line.startswith("+"):
            added.append(line[1:])
        else:
            turn()
    turn()
    if path:
        yield Edit(path, tuple(hunks), kind)
