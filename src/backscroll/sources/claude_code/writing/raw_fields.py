"""Replace single fields in the text of a JSON line. All other bytes stay as they are."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

__all__ = ["Field", "edit_object", "encode_text", "fields_of", "map_strings"]

_DECODER = json.JSONDecoder(strict=False)
_KEY = re.compile(r'[\s,]*("(?:[^"\\]|\\.)*")\s*:\s*', re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


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


def map_strings(text: str, replaced: Callable[[str], str | None]) -> str:
    """Replace whole strings, keys and values alike, in a JSON text. ``replaced`` returns None to keep one."""

    def new(found: re.Match[str]) -> str:
        value = replaced(json.loads(found[0], strict=False))
        return found[0] if value is None else encode_text(value)

    return _STRING.sub(new, text)


def _without_leading_comma(text: str) -> str:
    """Remove the comma that is left if the first member was removed."""
    return re.sub(r"^(\s*\{)\s*,", r"\1", text)
