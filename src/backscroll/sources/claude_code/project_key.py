"""Derive the name of a project's folder from the path in which Claude Code was started.

On Linux, most versions use the path as it is on disk. Some, such as 2.1.105, normalize it to NFC first.

The name cannot be converted back to a path, because all characters but letters and digits become dashes. It
can only be compared.
"""

import re
import unicodedata
from functools import lru_cache

__all__ = ["MAX_NAME_CHARS", "long_project_key", "matches", "project_key"]

MAX_NAME_CHARS = 200
_BASE36_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_NOT_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")


def project_key(path: str) -> str:
    """Return the folder name of a path: one dash per UTF-16 unit that is not an ASCII letter or digit."""
    name = _replace_characters(path)
    if len(name) <= MAX_NAME_CHARS:
        return name
    units = path.encode("utf-16-le", "surrogatepass")
    hash_ = 0
    for index in range(0, len(units), 2):
        hash_ = (hash_ * 31 + units[index] + 256 * units[index + 1]) & 0xFFFFFFFF
    hash_ = hash_ - (1 << 32) if hash_ >= 1 << 31 else hash_
    return f"{name[:MAX_NAME_CHARS]}-{_base36(abs(hash_))}"


def long_project_key(path: str) -> str:
    """Return the folder name of versions before 2.1, which do not shorten it."""
    return _replace_characters(path)


def _replace_characters(path: str) -> str:
    return _NOT_ALPHANUMERIC.sub(lambda found: "-" if found[0] <= "\uffff" else "--", path)


def _base36(number: int) -> str:
    digits = _BASE36_DIGITS[number % 36]
    while number := number // 36:
        digits = _BASE36_DIGITS[number % 36] + digits
    return digits


@lru_cache(maxsize=64)  # all sessions of a project compare the same values
def matches(path: str, name: str) -> bool:
    """Return whether a folder of this name can belong to the project at a path.

    Case can differ (drive letters). Very old versions replaced only slashes and dots. Versions before 2.1.105
    do not shorten names of up to 255 characters. Versions before 2.1.224 added another hash to long names.
    """
    name = name.casefold()
    return _matches(path, name) or (
        not path.isascii()
        and (composed := unicodedata.normalize("NFC", path)) != path
        and _matches(composed, name)
    )


def _matches(path: str, name: str) -> bool:
    key = project_key(path).casefold()
    if key == name or _NOT_ALPHANUMERIC.sub("-", name) == key:
        return True
    if len(key) <= MAX_NAME_CHARS:
        return False
    return name.startswith(key[: MAX_NAME_CHARS + 1]) or name == _replace_characters(path).casefold()
