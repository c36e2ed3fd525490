"""Units of a tool's history."""

from typing import NamedTuple

ROW_BYTES = 8 * 1024  # estimate for a database row with its blobs


class Unit(NamedTuple):
    """The smallest thing that can be read again on its own."""

    source: str  # "claude-code"
    root: str  # the tool's home folder
    path: str
    key: str = ""  # key of the session's rows in a database; empty for a whole file
    fingerprint: str = ""  # unchanged if the content is unchanged
    size: int = 0  # bytes, or rows of a database
    kind: str = "session"  # name of a `UnitKind` of the source
    session_id: str | None = None  # if known without parsing
    title: str | None = None  # if known without parsing
    modified_at: int = 0  # nanoseconds since 1970, 0 if unknown; the newest units are read first

    @property
    def estimated_bytes(self) -> int:
        """The size. For a session in a database, an estimate from its number of rows."""
        return estimate_bytes(self.size, self.key)


def estimate_bytes(size: int, key: str) -> int:
    """Return the size of a unit in bytes. With a key, the size is a number of rows."""
    return size * ROW_BYTES if key else size
