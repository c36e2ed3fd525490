"""Every error a caller can catch.

BackscrollError
├── UsageError                     the call itself cannot be carried out
├── DataNotFoundError              a tool's history is not where it was looked for
│   └── DatabaseNotFoundError
├── DatabaseUnreadableError        there, but not to be read
│   └── DatabaseLockedError        another process holds it
├── ArchiveError                   Backscroll's own archive cannot be opened or written
├── SessionNotFoundError
├── WorkspaceNotFoundError
└── DestinationError               a place that cannot be written to

A record that cannot be read is not an error but a `Problem`, a value.
"""

from os import PathLike, fspath

__all__ = [
    "ArchiveError",
    "BackscrollError",
    "DataNotFoundError",
    "DatabaseLockedError",
    "DatabaseNotFoundError",
    "DatabaseUnreadableError",
    "DestinationError",
    "SessionNotFoundError",
    "UsageError",
    "WorkspaceNotFoundError",
]


class BackscrollError(Exception):
    """Anything Backscroll raises on purpose; its text is written for people."""


class UsageError(BackscrollError):
    """The call itself cannot be carried out: a wrong name, value or combination."""


class _DataError(BackscrollError):
    def __init__(self, message: str, data_path: str | PathLike[str]) -> None:
        super().__init__(message)
        self.data_path = fspath(data_path)


class DataNotFoundError(_DataError):
    """A tool's history is not where it was looked for."""


class DatabaseNotFoundError(DataNotFoundError):
    """A tool's database is not where it was looked for."""


class DatabaseUnreadableError(_DataError):
    """A database that is there and cannot be read: damaged, encrypted or not permitted."""


class DatabaseLockedError(DatabaseUnreadableError):
    """Another process holds the database and did not let go in time."""


class ArchiveError(_DataError):
    """Backscroll's own archive or its index cannot be opened or written."""

    def __init__(self, message: str, data_path: str | PathLike[str], *, is_readable: bool = False) -> None:
        super().__init__(message, data_path)
        self.is_readable = is_readable  # what the archive holds can be told all the same


class SessionNotFoundError(BackscrollError):
    """No session answers to this ref."""

    def __init__(self, message: str, session_id: str | int) -> None:
        super().__init__(message)
        self.session_id = session_id


class WorkspaceNotFoundError(BackscrollError):
    """No session belongs to this workspace."""

    def __init__(self, message: str, workspace: str) -> None:
        super().__init__(message)
        self.workspace = workspace


class DestinationError(_DataError):
    """A place that was asked for cannot be written to."""
