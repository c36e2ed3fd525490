"""Outline of JSON documents: keys and types without values, for bug reports.

A key is shown only if it looks like an identifier in source code. Keys that a user may have chosen (paths,
addresses, text) become ``*``. So do all keys of an object that is used as a map, and everything in the input
and output of tools.
"""

import re
from collections.abc import Iterator
from typing import Any

_NAME = re.compile(r"[a-z_$][A-Za-z0-9_$]{0,39}")
_ID = re.compile(r"[0-9a-f]{8,}|[a-z]+_(?=\w*\d)(?=\w*[A-Z])\w{10,}")
_TYPE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,39}")
MAX_VERSION = 10_000
MAX_NAME_DIGITS = 4  # a key with more digits is an id, a date or a number
MAX_DEPTH = 6
MAX_KEYS = 60  # an object with more keys is a map
MIN_OBJECTS = 4  # needed to decide whether objects have common keys
MAX_LIST_ITEMS = 20

# Objects with data as keys. The values below them have normal keys again.
_MAPS = frozenset(
    {
        "agents", "annotations", "answers", "blobs", "bubbleDataMap", "codeBlockData", "conversationMap",
        "fileStates", "files", "mcpServers", "mentions", "modelUsage", "originalFileStates",
        "originalModelLines", "pastedContents", "projects", "servers", "trackedFileBackups", "usageData",
        "wireIngestContext", "wireToolInputs", "workspaceResults",
    }
)  # fmt: skip
# Input and output of tools: user data at any depth.
_FOREIGN = frozenset(
    {
        "args", "arguments", "env", "experimental_content", "headers", "input", "output",
        "params", "rawArgs", "result", "structuredContent", "tool_input", "tool_response",
    }
)  # fmt: skip


class Outline:
    """Outline of the documents of one type."""

    def __init__(self) -> None:
        self.documents = 0
        self._root = _Node()

    def add(self, document: Any) -> None:
        self.documents += 1
        self._root.add(document, "", 0)

    @property
    def types(self) -> dict[str, dict[str, int]]:
        """Return counts by path and type."""
        found: dict[str, dict[str, int]] = {}
        for path, types in self._root.paths(""):
            known = found.setdefault(path, {})
            for name, number in types.items():
                known[name] = known.get(name, 0) + number
        return found

    def lines(self) -> list[str]:
        """Yield a line per key: its path, its types and their counts."""
        lines = []
        for path, types in sorted(self.types.items()):
            spelled = ", ".join(f"{name} {number}" for name, number in sorted(types.items()))
            lines.append(f"{path or '(document)'}: {spelled}")
        return lines


class _Node:
    """All values at one path."""

    def __init__(self) -> None:
        self.types: dict[str, int] = {}
        self._keys: dict[str, _Node] = {}
        self._item: _Node | None = None
        self._is_map = False

    def add(self, value: Any, own: str, depth: int, *, is_foreign: bool = False) -> None:
        name = _type(value)
        self.types[name] = self.types.get(name, 0) + 1
        if depth >= MAX_DEPTH:
            return
        is_foreign = is_foreign or own in _FOREIGN
        if isinstance(value, dict):
            self._is_map |= is_foreign or own in _MAPS or len(value) > MAX_KEYS or any(map(_is_data, value))
            for key, item in value.items():
                shown = key if not self._is_map and _is_name(key) else "*"
                self._at(shown).add(item, shown, depth + 1, is_foreign=is_foreign)
        elif isinstance(value, list):
            for item in value[:MAX_LIST_ITEMS]:
                self._item = self._item or _Node()
                self._item.add(item, own, depth + 1, is_foreign=is_foreign)

    def _at(self, key: str) -> "_Node":
        return self._keys.setdefault(key, _Node())

    def paths(self, path: str) -> Iterator[tuple[str, dict[str, int]]]:
        yield path, self.types
        is_map = self._is_map or self._has_nothing_in_common()
        for key, node in self._keys.items():
            shown = "*" if is_map else key
            yield from node.paths(f"{path}.{shown}" if path else shown)
        if self._item is not None:
            yield from self._item.paths(f"{path}[]")

    def _has_nothing_in_common(self) -> bool:
        """Return whether no key is in half of the objects. Then the keys are data."""
        objects = self.types.get("object", 0)
        met = [sum(node.types.values()) for node in self._keys.values()]
        return objects >= MIN_OBJECTS and len(met) >= MIN_OBJECTS and max(met) * 2 <= objects


def _is_name(key: Any) -> bool:
    """Return whether a key looks like a field name."""
    return (
        isinstance(key, str)
        and _NAME.fullmatch(key) is not None
        and sum(letter.isdigit() for letter in key) <= MAX_NAME_DIGITS
        and _ID.fullmatch(key) is None
    )


def _is_data(key: Any) -> bool:
    """Return whether a key shows that its object is a map: a path, an address, a sentence, an id."""
    return not isinstance(key, str) or (not _is_name(key) and _TYPE_NAME.fullmatch(key) is None)


def safe_name(value: Any) -> str:
    """Return a type, role or key if it looks like a name, else only its type."""
    if isinstance(value, str) and _TYPE_NAME.fullmatch(value):
        return value
    return str(value) if type(value) is int and abs(value) < MAX_VERSION else f"({_type(value)})"


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
