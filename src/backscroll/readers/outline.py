"""The outline of documents: keys and types, with every value left out.

Meant for a bug report. A key is shown only when it looks like a name in
somebody's source code; what a user could have put there (paths, addresses,
words) becomes ``*``, and so do the keys of an object that is used as a map.
"""

import re
from typing import Any

__all__ = ["Outline", "name_of"]

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]{0,39}")
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
_LARGEST_VERSION = 10_000
_DEEPEST = 6
_MOST_NAMES = 60  # an object with more keys than this is a map
_MAPS = frozenset(
    {
        "trackedFileBackups", "codeBlockData", "originalFileStates", "originalModelLines", "conversationMap",
        "bubbleDataMap", "mentions", "modelUsage", "usageData", "wireToolInputs", "wireIngestContext",
        "answers",
        "pastedContents", "input", "args", "params", "env", "projects", "blobs",
    }
)  # fmt: skip


class Outline:
    """What the documents of one kind look like."""

    def __init__(self) -> None:
        self.documents = 0
        self.types: dict[str, dict[str, int]] = {}  # path to type to how often

    def add(self, document: Any) -> None:
        self.documents += 1
        self._add("", document, 0)

    def _add(self, path: str, value: Any, depth: int) -> None:
        seen = self.types.setdefault(path, {})
        name = _type(value)
        seen[name] = seen.get(name, 0) + 1
        if depth >= _DEEPEST:
            return
        if isinstance(value, dict):
            own = path.rpartition(".")[2].removesuffix("[]")
            is_map = own in _MAPS or len(value) > _MOST_NAMES
            for key, item in value.items():
                shown = key if not is_map and _NAME.fullmatch(key) else "*"
                self._add(f"{path}.{shown}" if path else shown, item, depth + 1)
        elif isinstance(value, list):
            for item in value[:20]:
                self._add(f"{path}[]", item, depth + 1)

    def lines(self) -> list[str]:
        """One line per key: its path, its types and how often each was met."""
        told = []
        for path in sorted(self.types):
            types = self.types[path]
            spelled = ", ".join(f"{name} {number}" for name, number in sorted(types.items()))
            told.append(f"{path or '(document)'}: {spelled}")
        return told


def _type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "str"
        case list():
            return "list"
        case dict():
            return "object"
    return type(value).__name__


def name_of(value: Any) -> str:
    """A type, role or key as it may be shown: a name as it is, anything else only as what it is."""
    if isinstance(value, str) and _TYPE_NAME.fullmatch(value):
        return value
    return str(value) if type(value) is int and abs(value) < _LARGEST_VERSION else f"({_type(value)})"
