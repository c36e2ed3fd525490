"""Copies of a session outside the archive."""

from typing import Literal

from msgspec import Struct

# tool     a file or database of the tool
# journal  an entry or note that names or quotes the session
# backup   a backup with the session
# archive  a damaged archive that a repair kept
CopyKind = Literal["tool", "journal", "backup", "archive"]


class RemainingCopy(Struct, frozen=True):
    """A file that contains a session or a part of it, and that `forget` does not change."""

    kind: CopyKind
    path: str
    source: str | None = None  # of a file of a tool
    is_shared: bool = False  # contains other sessions, too
    is_certain: bool = True  # False: it cannot be read, or was not searched
