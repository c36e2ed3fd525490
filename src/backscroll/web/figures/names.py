"""Short forms of names."""

from backscroll.model.text import one_line

__all__ = ["short_name"]

_MAX_CHARS = 60


def short_name(name: str) -> str:
    """Return the last part of a path; any other name as it is."""
    is_path = name.startswith(("/", "\\")) or name[1:3] in (":\\", ":/")
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return one_line(last or name if is_path else name, _MAX_CHARS)
