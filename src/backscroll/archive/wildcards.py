"""Names with ``*``, which matches any text. No other character is special."""

__all__ = ["glob_pattern", "like_pattern", "matches"]


def matches(text: str, pattern: str) -> bool:
    """Return whether a pattern matches the whole text."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    if not text.startswith(first) or not text.endswith(last):
        return False
    position, end = len(first), len(text) - len(last)
    for part in middle:
        position = text.find(part, position, end) + len(part)
        if position < len(part):
            return False
    return position <= end


def glob_pattern(pattern: str) -> str:
    """Return a pattern for SQLite's ``glob``."""
    return "".join(f"[{char}]" if char in "[?" else char for char in pattern)


def like_pattern(pattern: str) -> str:
    r"""Return a pattern for SQLite's ``like`` with the escape character ``\``."""
    escaped = "".join(f"\\{char}" if char in "\\%_" else char for char in pattern)
    return escaped.replace("*", "%")
