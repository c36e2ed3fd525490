"""Times and counts as short as people say them."""

from datetime import datetime

__all__ = ["compact_number", "format_age", "pluralize"]

_SPANS = (("y", 31_557_600), ("mo", 2_629_800), ("w", 604_800), ("d", 86_400), ("h", 3600), ("min", 60))


def format_age(at: datetime | None, now: datetime) -> str:
    """How long ago something was."""
    if at is None:
        return "unknown"
    seconds = (now - at).total_seconds()
    for unit, size in _SPANS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return "just now"


def pluralize(number: int, what: str) -> str:
    """So many of them: 1 session, 1,200 messages."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def compact_number(number: int) -> str:
    """A count in at most four characters up to a trillion: 950, 1.2k, 110k, 3.4M."""
    for unit, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 1000)):
        # A number that would be rounded up to a thousand of a unit is one of the next.
        if number >= size * 0.9995:
            scaled = number / size
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return str(number)
