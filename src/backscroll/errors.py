"""Errors that Backscroll raises.

BackscrollError
├── UsageError                     invalid name, value or combination of arguments
├── DataNotFoundError              a tool's history is not at the expected path
│   └── DatabaseNotFoundError
├── DatabaseUnreadableError        exists but cannot be read
│   └── DatabaseLockedError        locked by another process
├── ArchiveError                   the archive or its index cannot be opened or written
├── SessionNotFoundError
├── WorkspaceNotFoundError
└── DestinationError               a path cannot be written to

A record that cannot be parsed is not an error but a `Problem`, a value.
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
    """Base class. The message is a sentence for users."""


class UsageError(BackscrollError):
    """Invalid name, value or combination of arguments."""


class _DataError(BackscrollError):
    def __init__(self, message: str, data_path: str | PathLike[str]) -> None:
        super().__init__(message)
        self.data_path = fspath(data_path)


class DataNotFoundError(_DataError):
    """A tool's history is not at the expected path."""


class DatabaseNotFoundError(DataNotFoundError):
    """A tool's database is not at the expected path."""


class DatabaseUnreadableError(_DataError):
    """A database exists but cannot be read: damaged, encrypted or without permission."""


class DatabaseLockedError(DatabaseUnreadableError):
    """A database stayed locked by another process until the timeout."""


class ArchiveError(_DataError):
    """The archive or its index cannot be opened or written."""

    def __init__(self, message: str, data_path: str | PathLike[str], *, is_readable: bool = False) -> None:
        super().__init__(message, data_path)
        self.is_readable = is_readable  # sessions in the archive can still be read


class SessionNotFoundError(BackscrollError):
    """No session matches a ref, or several do."""

    def __init__(self, message: str, session_id: str | int) -> None:
        super().__init__(message)
        self.session_id = session_id


class WorkspaceNotFoundError(BackscrollError):
    """No session belongs to a workspace."""

    def __init__(self, message: str, workspace: str) -> None:
        super().__init__(message)
        self.workspace = workspace


class DestinationError(_DataError):
    """A path cannot be written to."""
