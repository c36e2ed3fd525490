"""Name of a project's folder, derived from the path in which Claude Code was started.

The name cannot be converted back to a path, because all characters but letters and digits become dashes. It
can only be compared.
"""

import re
import unicodedata
from functools import lru_cache

__all__ = ["matches", "project_key"]

MAX_NAME_CHARS = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_OTHER = re.compile(r"[^A-Za-z0-9]")


def project_key(path: str) -> str:
    """Return the folder name of a path: one dash per UTF-16 unit that is not an ASCII letter or digit."""
    path = unicodedata.normalize("NFC", path)
    name = _OTHER.sub(lambda found: "-" if found[0] <= "\uffff" else "--", path)
    if len(name) <= MAX_NAME_CHARS:
        return name
    units = path.encode("utf-16-le", "surrogatepass")
    number = 0
    for at in range(0, len(units), 2):
        number = (number * 31 + units[at] + 256 * units[at + 1]) & 0xFFFFFFFF
    number = number - (1 << 32) if number >= 1 << 31 else number
    return f"{name[:MAX_NAME_CHARS]}-{_base36(abs(number))}"


def _base36(number: int) -> str:
    digits = _DIGITS[number % 36]
    while number := number // 36:
        digits = _DIGITS[number % 36] + digits
    return digits


@lru_cache(maxsize=64)  # all sessions of a project compare the same values
def matches(path: str, name: str) -> bool:
    """Return whether a folder of this name can belong to the project.

    Case can differ (drive letters). Very old versions replaced only slashes and dots. Long names had another
    hash before 2.1.224.
    """
    key = project_key(path).casefold()
    name = name.casefold()
    if key == name or _OTHER.sub("-", name) == key:
        return True
    return len(key) > MAX_NAME_CHARS and name.startswith(key[: MAX_NAME_CHARS + 1])
