"""What a tool answered, as text a person can read and search."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from backscroll.sources.cursor.database.decode import as_int, as_list, as_map, as_text, storable, unwrap

__all__ = ["failure", "readable"]

_PLAIN = ("output", "contents", "content", "text", "result", "message", "summary")
_NEGLIGIBLE = frozenset(
    {"rejected", "notInterrupted", "exitCode", "exitCodeV2", "resultForModel", "isBackground"}
)


def readable(value: Any) -> str | None:
    """The answer in words; None when there is none. What has no better form stays JSON."""
    if value is None:
        return None
    answer = unwrap(value)
    if isinstance(answer, str):
        return answer
    if answer in ({}, []):
        return ""
    for form in _FORMS:
        text = form(answer)
        if text is not None:
            return text
    return pretty(answer)


def pretty(value: Any) -> str:
    """JSON laid out for reading."""
    return msgspec.json.format(msgspec.json.encode(storable(value)), indent=2).decode()


def failure(error: Any) -> str:
    """What a tool's error says to the user, else all of it."""
    found = unwrap(error)
    if isinstance(found, str):
        return found
    fields = as_map(found)
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
            return failure(text)
    return pretty(found) if found else ""


def _shell(answer: Any) -> str | None:
    fields = as_map(answer)
    output = fields.get("output")
    if not isinstance(output, str) or not fields.keys() - {"output"} <= _NEGLIGIBLE:
        return None
    code = as_int(fields.get("exitCode"))
    return f"{output}\n[exit code {code}]".lstrip("\n") if code else output


def _diff(answer: Any) -> str | None:
    fields = as_map(answer)
    chunks = as_list(as_map(fields.get("diff")).get("chunks"))
    texts = [text for chunk in chunks if (text := as_text(as_map(chunk).get("diffString")))]
    if not texts:
        return None
    if fields.get("applyFailed"):
        texts.insert(0, "[the edit could not be applied]")
    return "\n".join(texts)


def _entries(answer: Any) -> str | None:
    """``list_dir``: names, folders with a slash."""
    fields = as_map(answer)
    files = fields.get("files")
    if not isinstance(files, list) or not all(isinstance(as_map(file).get("name"), str) for file in files):
        return None
    return "\n".join(f"{file['name']}/" if file.get("isDirectory") else file["name"] for file in files)


def _globbed(answer: Any) -> str | None:
    """``glob_file_search``: paths below the folders that were searched."""
    folders = as_map(answer).get("directories")
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
            lines.append(f"[{total} files in {base}]" if base else f"[{total} files]")
    return "\n".join(line for line in lines if line) or None


def _matches(answer: Any) -> str | None:
    """``grep``: file, line and text of every match, or the files alone."""
    success = as_map(as_map(answer).get("success"))
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
            number = as_int(line.get("lineNumber")) or as_int(line.get("line"))
            text = as_text(line.get("content")) or as_text(line.get("text"))
            place = f"{file}:{number}" if number is not None else file
            yield f"{place}: {text}" if text else place


def _only_text(answer: Any) -> str | None:
    """An object that is little more than one text."""
    fields = as_map(answer)
    for name in _PLAIN:
        text = fields.get(name)
        if isinstance(text, str) and text.strip() and fields.keys() - {name} <= _NEGLIGIBLE:
            return text
    return None


def _file(answer: Any) -> str | None:
    """``read_file``: the contents, whatever else is said about them."""
    fields = as_map(answer)
    text = fields.get("contents")
    return text if isinstance(text, str) and text else None


def _blocks(answer: Any) -> str | None:
    """Text blocks, as MCP servers answer."""
    items = answer if isinstance(answer, list) else as_map(answer).get("content")
    if not isinstance(items, list) or not items:
        return None
    texts = [
        as_text(as_map(item).get("text")) for item in items if as_map(item).get("type", "text") == "text"
    ]
    return "\n".join(texts) if len(texts) == len(items) and all(texts) else None


_FORMS: tuple[Callable[[Any], str | None], ...] = (
    _shell,
    _diff,
    _entries,
    _globbed,
    _matches,
    _file,
    _blocks,
    _only_text,
)
