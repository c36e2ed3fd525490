"""Name of the folder in which Claude Code stores a project."""

_MAX_KEY_CHARS = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def project_key(path: str, *, is_shortened: bool = True) -> str:
    """Return the name of the folder below ``projects/`` for a working directory.

    Counts UTF-16 units as JavaScript does, so an emoji becomes two dashes. Paths that
    differ only in characters other than letters and digits have the same key. ``is_shortened``
    is False for versions before 2.1.105, which do not shorten long names.
    """
    units = _utf16(path)
    name = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    if len(name) <= _MAX_KEY_CHARS or not is_shortened:
        return name
    return f"{name[:_MAX_KEY_CHARS]}-{_base36(abs(_hash(units)))}"


def _utf16(text: str) -> list[int]:
    raw = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(raw[i : i + 2], "little") for i in range(0, len(raw), 2)]


def _hash(units: list[int]) -> int:
    value = 0
    for unit in units:
        value = ((value << 5) - value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _base36(number: int) -> str:
    out = ""
    while True:
        number, digit = divmod(number, 36)
        out = _DIGITS[digit] + out
        if not number:
            return out
