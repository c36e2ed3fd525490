"""Numbers that count something, among values that may be anything."""

from typing import Any

__all__ = ["UNCOUNTED", "integer"]

UNCOUNTED = 2**53  # nobody has counted this far


def integer(value: Any) -> int | None:
    """The value if it is a count that somebody can have counted to."""
    if type(value) is int:
        return value if 0 <= value < UNCOUNTED else None
    return int(value) if isinstance(value, float) and 0 <= value < UNCOUNTED else None
