"""The files that a message is about: edited, read, searched in, or handed over with it."""

from functools import lru_cache
from typing import Any

from backscroll.model import Message

__all__ = ["paths_of"]

_ENDINGS = ("path", "paths", "file", "files", "filename", "folder", "directory")
_LONGEST = 1024  # characters; what is longer is no path
_MOST = 100  # of one message


def paths_of(message: Message) -> tuple[str, ...]:
    """Every path that a message names as one, each once.

    Which argument of which tool holds a path is told by the argument's name: file_path, target_file,
    relativeWorkspacePath. So tools that nobody has heard of yet are understood, too.
    """
    tool = message.tool
    found = [one.path for one in message.attachments if one.path] if message.attachments else []
    if tool is not None:
        if tool.edits:
            found += [edit.path for edit in tool.edits]
        found += _named(tool.params)
    return tuple(dict.fromkeys(found[:_MOST])) if found else ()


def _named(params: dict[str, Any], *, is_within: bool = False) -> list[str]:
    found: list[str] = []
    for name, value in params.items():
        if isinstance(value, str):
            if _says_path(name) and _may_be_path(value):
                found.append(value)
        elif isinstance(value, list):
            for one in value[:_MOST]:
                if isinstance(one, dict) and not is_within:
                    found += _named(one, is_within=True)
                elif isinstance(one, str) and _says_path(name) and _may_be_path(one):
                    found.append(one)
    return found


@lru_cache(maxsize=1024)
def _says_path(name: str) -> bool:
    return name.lower().endswith(_ENDINGS)


def _may_be_path(value: str) -> bool:
    return 0 < len(value) <= _LONGEST and "\n" not in value
