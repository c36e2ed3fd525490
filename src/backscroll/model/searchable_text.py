"""The text and the file paths by which a message or a session's annotations can be found."""

from functools import lru_cache
from typing import Any

import msgspec

from backscroll.model import Message, SessionSummary

__all__ = ["ANNOTATIONS_POSITION", "annotations_text", "paths_of", "searchable_text"]

# Position of a session's annotations in the index, after every message that a session can have.
ANNOTATIONS_POSITION = 1 << 40

_ENDINGS = ("path", "paths", "file", "files", "filename", "folder", "directory")
MAX_PATH_CHARS = 1024  # characters
MAX_PATHS = 100  # paths per message


def paths_of(message: Message) -> tuple[str, ...]:
    """Return the distinct paths in a message.

    A tool argument is a path if its name ends like one: file_path, target_file, relativeWorkspacePath. So
    unknown tools are covered, too.
    """
    tool = message.tool
    found = [one.path for one in message.attachments if one.path] if message.attachments else []
    if tool is not None:
        if tool.edits:
            found += [edit.path for edit in tool.edits]
        found += _paths_in(tool.params)
    return tuple(dict.fromkeys(found[:MAX_PATHS])) if found else ()


def _paths_in(params: dict[str, Any], *, is_nested: bool = False) -> list[str]:
    found: list[str] = []
    for name, value in params.items():
        if isinstance(value, str):
            if _is_path_name(name) and _may_be_path(value):
                found.append(value)
        elif isinstance(value, list):
            for item in value[:MAX_PATHS]:
                if isinstance(item, dict) and not is_nested:
                    found += _paths_in(item, is_nested=True)
                elif isinstance(item, str) and _is_path_name(name) and _may_be_path(item):
                    found.append(item)
    return found


@lru_cache(maxsize=1024)
def _is_path_name(name: str) -> bool:
    return name.lower().endswith(_ENDINGS)


def _may_be_path(value: str) -> bool:
    return 0 < len(value) <= MAX_PATH_CHARS and "\n" not in value


def searchable_text(message: Message) -> str:
    """Return the text of a message, or the name, arguments and result of a tool call."""
    tool = message.tool
    if tool is None:
        return message.content
    asked = "\n".join(f"{name}: {_value_text(value)}" for name, value in tool.params.items())
    return "\n".join(part for part in (tool.name, asked, message.content, tool.result) if part)


def annotations_text(summary: SessionSummary) -> str:
    """Return what the user added to a session, a line or more each: title, tags and notes."""
    title = summary.title if summary.original_title is not None else None
    tags = " ".join(f"#{tag}" for tag in summary.tags)
    return "\n".join(part for part in (title, tags, *(note.text for note in summary.notes)) if part)


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
