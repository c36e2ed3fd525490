"""Remove secrets from database values.

Only the secret itself is removed; every other byte stays unchanged.
"""

import re

import msgspec

from backscroll.readers import lenient_json

__all__ = ["blank", "is_secret"]

_HINT = b'ncryptionKey"'
_RARE_LETTER = b"K"  # the rarest letter of the hint: fast to search for
MAX_NAME_CHARS = 80
_FIELD = re.compile(rb'"(\w*[eE]ncryptionKey)"\s*:\s*')
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\\?\Z)', re.DOTALL)
_SECRET = re.compile(r"key|token|secret|auth", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Return whether a metadata field may contain a secret, by its name."""
    return _SECRET.search(name) is not None


def blank(value: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return a JSON value with its secrets removed, and the names of their fields."""
    at = value.find(_HINT) if _RARE_LETTER in value else -1
    if at < 0:
        return value, ()
    names: dict[str, None] = {}
    parts: list[bytes] = []
    done = 0
    while at >= 0:
        field = _FIELD.match(value, value.rfind(b'"', max(0, at - MAX_NAME_CHARS), at))
        text = _TEXT.match(value, field.end()) if field else None
        if field and text:
            names[field[1].decode()] = None
            parts += [value[done : field.end()], b'""']
            done = text.end()
        elif field and not value.startswith(b"null", field.end()):
            return _rewritten(value)  # rare: the secret is not a string
        at = value.find(_HINT, max(done, at + 1))
    return b"".join([*parts, value[done:]]), tuple(names)


def _rewritten(value: bytes) -> tuple[bytes, tuple[str, ...]]:
    try:
        document = lenient_json.load(value)
    except lenient_json.FAILURES:
        return b"", ("everything",)  # a value that cannot be checked is not kept
    names: list[str] = []
    return msgspec.json.encode(_without(document, names)), tuple(dict.fromkeys(names))


def _without(document: object, names: list[str]) -> object:
    if isinstance(document, list):
        return [_without(item, names) for item in document]
    if not isinstance(document, dict):
        return document
    told: dict[str, object] = {}
    for key, item in document.items():
        if key.lower().endswith("encryptionkey") and item not in (None, ""):
            names.append(key)
            told[key] = ""
        else:
            told[key] = _without(item, names)
    return told
