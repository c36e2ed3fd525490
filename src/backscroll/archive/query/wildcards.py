"""Names with ``*`` in them, which stands for anything; nothing else in them means anything."""

__all__ = ["as_glob", "as_like", "fits"]


def fits(text: str, pattern: str) -> bool:
    """Whether a text is what a pattern says, all of it."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    if not text.startswith(first) or not text.endswith(last):
        return False
    place, end = len(first), len(text) - len(last)
    for part in middle:
        place = text.find(part, place, end) + len(part)
        if place < len(part):
            return False
    return place <= end


def as_glob(pattern: str) -> str:
    """A pattern as SQLite's ``glob`` takes it."""
    return "".join(f"[{char}]" if char in "[?" else char for char in pattern)


def as_like(pattern: str) -> str:
    r"""A pattern as SQLite's ``like`` takes it, escaped by ``\``."""
    escaped = "".join(f"\\{char}" if char in "\\%_" else char for char in pattern)
    return escaped.replace("*", "%")
