"""Convert the result of a tool call to readable, searchable text."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from backscroll.model.text import pluralize
from backscroll.sources.cursor.database.decode import as_int, as_list, as_map, as_text, make_encodable, unwrap

_TEXT_KEYS = ("output", "contents", "content", "text", "result", "message", "summary")
_NEGLIGIBLE_KEYS = frozenset(
    {"rejected", "notInterrupted", "exitCode", "exitCodeV2", "resultForModel", "isBackground"}
)


def result_text(value: Any) -> str | None:
    """Return a result as text; None if there is none. A result of unknown form is formatted as JSON."""
    if value is None:
        return None
    result = unwrap(value)
    if isinstance(result, str):
        return result
    if result in ({}, []):
        return ""
    for formatter in _FORMATTERS:
        text = formatter(result)
        if text is not None:
            return text
    return _format_json(result)


def _format_json(value: Any) -> str:
    """Return indented JSON."""
    return msgspec.json.format(msgspec.json.encode(make_encodable(value)), indent=2).decode()


def error_text(error: Any) -> str:
    """Return the message of a tool's error that the user saw, else the whole error."""
    decoded = unwrap(error)
    if isinstance(decoded, str):
        return decoded
    fields = as_map(decoded)
    for name in (
        "clientVisibleErrorMessage",
        "modelVisibleErrorMessage",
        "message",
        "error",
        "title",
        "detail",
    ):
        text = fields.get(name)
        if isinstance(text, str) and text.strip():
            return text
        if isinstance(text, dict) and text:
            return error_text(text)
    return _format_json(decoded) if decoded else ""


def _shell_text(result: Any) -> str | None:
    """Format a shell command: its output, and the exit code if it is not 0."""
    fields = as_map(result)
    output = fields.get("output")
    if not isinstance(output, str) or not fields.keys() - {"output"} <= _NEGLIGIBLE_KEYS:
        return None
    code = as_int(fields.get("exitCode"))
    return f"{output}\n[exit code {code}]".lstrip("\n") if code else output


def _diff_text(result: Any) -> str | None:
    """Format an edit: the diff of every chunk."""
    fields = as_map(result)
    chunks = as_list(as_map(fields.get("diff")).get("chunks"))
    texts = [text for chunk in chunks if (text := as_text(as_map(chunk).get("diffString")))]
    if not texts:
        return None
    if fields.get("applyFailed"):
        texts.insert(0, "[the edit could not be applied]")
    return "\n".join(texts)


def _folder_text(result: Any) -> str | None:
    """Format ``list_dir``: names, folders with a slash."""
    fields = as_map(result)
    files = fields.get("files")
    if not isinstance(files, list) or not all(isinstance(as_map(file).get("name"), str) for file in files):
        return None
    return "\n".join(f"{file['name']}/" if file.get("isDirectory") else file["name"] for file in files)


def _glob_text(result: Any) -> str | None:
    """Format ``glob_file_search``: paths below the searched folders."""
    folders = as_map(result).get("directories")
    if not isinstance(folders, list) or not folders:
        return None
    lines: list[str] = []
    for folder in map(as_map, folders):
        base = as_text(folder.get("absPath"))
        for file in map(as_map, as_list(folder.get("files"))):
            name = as_text(file.get("relPath")) or as_text(file.get("path"))
            lines.append(f"{base.rstrip('/')}/{name}" if base and name else base or name)
        total = as_int(folder.get("totalFiles"))
        if total is not None:
            files = pluralize(total, "file")
            lines.append(f"[{files} in {base}]" if base else f"[{files}]")
    return "\n".join(line for line in lines if line) or None


def _grep_text(result: Any) -> str | None:
    """Format ``grep``: file, line number and text of every match, or only the files."""
    success = as_map(as_map(result).get("success"))
    results = as_map(success.get("workspaceResults"))
    if not results:
        return None
    lines: list[str] = []
    for found in results.values():
        fields = as_map(found)
        lines += _match_lines(as_list(as_map(fields.get("content")).get("matches")))
        files = fields.get("files")
        names = as_list(files) or as_list(as_map(files).get("files"))
        lines += [name if isinstance(name, str) else as_text(as_map(name).get("path")) for name in names]
    return "\n".join(line for line in lines if line) or None


def _match_lines(matches: list[Any]) -> Iterator[str]:
    for match in map(as_map, matches):
        file = as_text(match.get("file")) or as_text(match.get("path"))
        inner = as_list(match.get("matches")) or as_list(match.get("lines")) or [match]
        for line in map(as_map, inner):
            line_number = as_int(line.get("lineNumber")) or as_int(line.get("line"))
            text = as_text(line.get("content")) or as_text(line.get("text"))
            location = f"{file}:{line_number}" if line_number is not None else file
            yield f"{location}: {text}" if text else location


def _only_text(result: Any) -> str | None:
    """Return the only text of an object, if its other fields are negligible."""
    fields = as_map(result)
    for name in _TEXT_KEYS:
        text = fields.get(name)
        if isinstance(text, str) and text.strip() and fields.keys() - {name} <= _NEGLIGIBLE_KEYS:
            return text
    return None


def _file_text(result: Any) -> str | None:
    """Format ``read_file``: the contents without other fields."""
    fields = as_map(result)
    text = fields.get("contents")
    return text if isinstance(text, str) and text else None


def _blocks_text(result: Any) -> str | None:
    """Join text blocks, the result format of MCP servers."""
    items = result if isinstance(result, list) else as_map(result).get("content")
    if not isinstance(items, list) or not items:
        return None
    texts = [
        as_text(as_map(item).get("text")) for item in items if as_map(item).get("type", "text") == "text"
    ]
    return "\n".join(texts) if len(texts) == len(items) and all(texts) else None


_FORMATTERS: tuple[Callable[[Any], str | None], ...] = (
    _shell_text,
    _diff_text,
    _folder_text,
    _glob_text,
    _grep_text,
    _file_text,
    _blocks_text,
    _only_text,
)
