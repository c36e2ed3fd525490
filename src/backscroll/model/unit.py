"""Units of a tool's history."""

from typing import NamedTuple

__all__ = ["Unit"]


class Unit(NamedTuple):
    """The smallest thing that can be read again on its own."""

    source: str  # "claude-code"
    root: str  # the tool's home folder
    path: str
    key: str = ""  # key of the session's rows in a database; empty for a whole file
    fingerprint: str = ""  # unchanged if the content is unchanged
    size: int = 0  # bytes, or rows of a database
    kind: str = "session"  # "session", "agent", "prompts", "transcript", "index", …
    session_id: str | None = None  # if known without parsing
    title: str | None = None  # if known without parsing
