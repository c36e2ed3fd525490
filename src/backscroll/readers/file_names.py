"""File names that are not valid UTF-8."""

__all__ = ["escape_name", "is_utf8"]


def is_utf8(name: str) -> bool:
    """Return whether a name can be encoded as UTF-8."""
    return name.isascii() or name == escape_name(name)


def escape_name(name: str) -> str:
    """Return a name with invalid bytes escaped. It identifies the file but does not open it."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode()
