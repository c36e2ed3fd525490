"""Edit JSON texts. Only the edited members change; all other bytes stay as they are."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

Replacement = Callable[[str], str | None]  # returns None to keep a string

_DECODER = json.JSONDecoder(strict=False)
_KEY = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*', re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


# Objects


class Field(NamedTuple):
    """A member of an object: its value, and where it is in the text."""

    value: Any
    key_start: int  # with the comma before it
    start: int  # of the value
    end: int


def fields_of(text: str) -> dict[str, Field]:
    """Return the members of the object in a text. Raises `ValueError` if it is not a JSON object.

    Of a repeated key, the last member is returned, as a JSON parser does.
    """
    found: dict[str, Field] = {}
    position = len(text) - len(text.lstrip())
    if text[position : position + 1] != "{":
        raise ValueError("not a JSON object")
    position += 1
    while (key := _KEY.match(text, position)) is not None:
        value, end = _DECODER.raw_decode(text, key.end())
        found[json.loads(key[1], strict=False)] = Field(value, position, key.end(), end)
        position = end
    if text[position:].strip() != "}":
        raise ValueError("not a single JSON object")
    return found


def edit_object(text: str, fields: Mapping[str, Field], changes: Mapping[str, str | None]) -> str:
    """Replace members by new JSON texts. None removes a member; a member that does not exist is added."""
    parts: list[str] = []
    position = 0
    for name, field in sorted(fields.items(), key=lambda item: item[1].start):
        if name not in changes:
            continue
        new = changes[name]
        parts.append(text[position : field.key_start if new is None else field.start])
        parts.append(new or "")
        position = field.end
    rest = text[position:]
    added = [f"{encode_text(name)}:{new}" for name, new in changes.items() if name not in fields and new]
    if added:
        end = rest.rindex("}")
        rest = f"{rest[:end]},{','.join(added)}{rest[end:]}"
    return _without_leading_comma("".join(parts) + rest)


def encode_text(value: str) -> str:
    """Return a string as JSON, as JavaScript writes it."""
    return json.dumps(value, ensure_ascii=False)


def replace_strings(text: str, new_string: Replacement) -> str:
    """Replace whole strings, keys and values alike, in a JSON text."""

    def new(found: re.Match[str]) -> str:
        value = new_string(json.loads(found[0], strict=False))
        return found[0] if value is None else encode_text(value)

    return _STRING.sub(new, text)


def _without_leading_comma(text: str) -> str:
    """Remove the comma that is left if the first member was removed."""
    return re.sub(r"^(\s*\{)\s*,", r"\1", text)


# Declared members

_Tree = dict[str, "_Tree"]  # names of members, with those of nested members


class Members:
    """Replaces strings in declared members of records.

    ``names`` are the members by the type of the record; those of "" are in all records. Names of nested
    members are separated by dots. All strings in a declared member are replaced, also in lists and objects.
    """

    def __init__(self, names: Mapping[str, Iterable[str]], type_field: str = "type") -> None:
        self._names = names
        self._type_field = type_field
        self._trees: dict[str, _Tree] = {}  # by type

    def changes(
        self, text: str, fields: Mapping[str, Field], new_string: Replacement
    ) -> dict[str, str | None]:
        """Return the members of a record that change, as JSON texts."""
        kind = fields.get(self._type_field)
        return _changes(text, fields, self._tree(kind.value if kind is not None else ""), new_string)

    def edit(self, text: str, new_string: Replacement) -> str:
        """Return a record with the new strings. A text that is not a JSON object stays as it is."""
        try:
            fields = fields_of(text)
        except ValueError:
            return text
        changes = self.changes(text, fields, new_string)
        return edit_object(text, fields, changes) if changes else text

    def _tree(self, kind: object) -> _Tree:
        name = kind if isinstance(kind, str) and kind in self._names else ""
        if name not in self._trees:
            tree: _Tree = {}
            for path in (*self._names.get("", ()), *(self._names[name] if name else ())):
                members = tree
                for part in path.split("."):
                    members = members.setdefault(part, {})
            self._trees[name] = tree
        return self._trees[name]


def _changes(
    text: str, fields: Mapping[str, Field], tree: _Tree, new_string: Replacement
) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name, below in tree.items():
        if (field := fields.get(name)) is None:
            continue
        before = after = text[field.start : field.end]
        if not below:
            after = replace_strings(before, new_string)
        elif isinstance(field.value, dict):
            inner = fields_of(before)
            after = edit_object(before, inner, _changes(before, inner, below, new_string))
        if after != before:
            found[name] = after
    return found


# Bytes


def edit_bytes(text: bytes, edit: Callable[[str], str]) -> bytes:
    """Return an edited text. Invalid UTF-8 stays as it is."""
    return edit(text.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def lines_of(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield lines with their newlines; the last one as it is."""
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest
