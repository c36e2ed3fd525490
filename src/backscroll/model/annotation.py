"""What people add to a session themselves. It lies in the archive, never in a tool's files."""

from datetime import datetime

from msgspec import Struct

__all__ = ["NOTES", "Note"]

# Where notes stand in the index: behind every message that a session can have.
NOTES = 1 << 40


class Note(Struct, frozen=True, gc=False):
    """Words about a session, with the number that they are edited and deleted by."""

    number: int  # from 1, within the session; never given twice while a later one is there
    text: str
    written_at: datetime
    edited_at: datetime | None = None
