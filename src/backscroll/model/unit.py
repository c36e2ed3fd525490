"""What can be read again on its own."""

from typing import NamedTuple

__all__ = ["Unit"]


class Unit(NamedTuple):
    """The smallest thing that can be read again on its own."""

    source: str  # "claude-code"
    root: str  # the tool's home it was found below
    path: str
    key: str = ""  # the rows of one session in a database; empty when the unit is a whole file
    fingerprint: str = ""  # the same fingerprint means there is nothing new
    size: int = 0  # bytes, or rows where a database does not say
    kind: str = (
        "session"  # "session", "agent", "prompts", "transcript", "index", …: what the source expects there
    )
    session_id: str | None = None  # the session it tells of, where the name already says it
    title: str | None = None  # known without reading it
