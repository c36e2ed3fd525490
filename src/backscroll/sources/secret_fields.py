"""Blank secrets in database values.

A secret is replaced by an empty string; all other bytes stay unchanged.
"""

import re

import msgspec

from backscroll.readers import lenient_json

_NAME_END = b'ncryptionKey"'
_RAREST_LETTER = b"K"  # of the name: faster to search for
_MAX_NAME_BYTES = 80
_FIELD = re.compile(rb'"(\w*[eE]ncryptionKey)"\s*:\s*')
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_SECRET_NAME = re.compile(r"key|token|secret|auth", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Return whether a metadata field may contain a secret, by its name."""
    return _SECRET_NAME.search(name) is not None


def blank(value: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return a JSON value with its secrets blanked, and the names of their fields."""
    position = value.find(_NAME_END) if _RAREST_LETTER in value else -1
    if position < 0:
        return value, ()
    names: dict[str, None] = {}
    parts: list[bytes] = []
    copied_until = 0
    while position >= 0:
        field = _FIELD.match(value, value.rfind(b'"', max(0, position - _MAX_NAME_BYTES), position))
        string = _STRING.match(value, field.end()) if field else None
        if field and string:
            names[field[1].decode()] = None
            parts += [value[copied_until : field.end()], b'""']
            copied_until = string.end()
        elif field and not value.startswith(b"null", field.end()):
            return _blank_decoded(value)  # rare: the secret is not a string
        position = value.find(_NAME_END, max(copied_until, position + 1))
    return b"".join([*parts, value[copied_until:]]), tuple(names)


def _blank_decoded(value: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Blank secrets of any type. The value is decoded and encoded again."""
    try:
        document = lenient_json.load(value)
    except lenient_json.FAILURES:
        return b"", ("everything",)  # a value that cannot be checked is not kept
    names: list[str] = []
    return msgspec.json.encode(_without_secrets(document, names)), tuple(dict.fromkeys(names))


def _without_secrets(document: object, names: list[str]) -> object:
    """Return a copy without secrets. The names of their fields are added to ``names``."""
    if isinstance(document, list):
        return [_without_secrets(item, names) for item in document]
    if not isinstance(document, dict):
        return document
    fields: dict[str, object] = {}
    for key, item in document.items():
        if key.lower().endswith("encryptionkey") and item not in (None, ""):
            names.append(key)
            fields[key] = ""
        else:
            fields[key] = _without_secrets(item, names)
    return fields
