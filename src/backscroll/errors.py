"""Errors that Backscroll raises.

BackscrollError
├── UsageError                     invalid name, value or combination of arguments
├── DataNotFoundError              data that was asked for does not exist
│   └── DatabaseNotFoundError
├── DatabaseUnreadableError        exists but cannot be read
│   └── DatabaseLockedError        locked by another process
├── ArchiveError                   the archive or its index cannot be opened or written
├── SessionNotFoundError
├── WorkspaceNotFoundError
├── RepositoryError                not a git repository, or git is missing or fails
├── CommitNotFoundError            no commit matches a hash or name
├── DestinationError               a path cannot be written to
├── UnknownStoreVersionError       a tool's store has a layout that is not known well enough to change it
├── TransferError                  a session cannot be restored, moved or copied
├── ToolRunningError               a running process has open what would be changed
├── ChangeConflictError            a file or row is not as a planned change expects
├── ChangeNotFoundError            no recorded change has this id
└── BackupError                    a backup cannot be created
    ├── InvalidBackupError         not a backup, damaged, or incomplete
    └── RestoreError               a backup cannot be restored

A record that cannot be parsed is not an error but a `Problem`, a value.
"""

from os import PathLike, fspath

__all__ = [
    "ArchiveError",
    "BackscrollError",
    "BackupError",
    "ChangeConflictError",
    "ChangeNotFoundError",
    "CommitNotFoundError",
    "DataNotFoundError",
    "DatabaseLockedError",
    "DatabaseNotFoundError",
    "DatabaseUnreadableError",
    "DestinationError",
    "InvalidBackupError",
    "RepositoryError",
    "RestoreError",
    "SessionNotFoundError",
    "ToolRunningError",
    "TransferError",
    "UnknownStoreVersionError",
    "UsageError",
    "WorkspaceNotFoundError",
]


class BackscrollError(Exception):
    """Base class. The message is a sentence for users: the reason and a hint.

    A hint names a command or an option of the command line. Interfaces without a command line show only the
    reason.
    """

    def __init__(self, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{reason} {hint}" if hint else reason)
        self.reason = reason


class UsageError(BackscrollError):
    """Invalid name, value or combination of arguments."""


class _DataError(BackscrollError):
    def __init__(self, reason: str, data_path: str | PathLike[str], *, hint: str = "") -> None:
        super().__init__(reason, hint=hint)
        self.data_path = fspath(data_path)


class DataNotFoundError(_DataError):
    """Data that was asked for does not exist: history of a tool, originals in the archive, a file to open."""


class DatabaseNotFoundError(DataNotFoundError):
    """A tool's database is not at the expected path."""


class DatabaseUnreadableError(_DataError):
    """A database exists but cannot be read: damaged, encrypted or without permission."""


class DatabaseLockedError(DatabaseUnreadableError):
    """A database stayed locked by another process until the timeout."""


class ArchiveError(_DataError):
    """The archive or its index cannot be opened or written."""

    def __init__(
        self, reason: str, data_path: str | PathLike[str], *, hint: str = "", is_readable: bool = False
    ) -> None:
        super().__init__(reason, data_path, hint=hint)
        self.is_readable = is_readable  # sessions in the archive can still be read


class SessionNotFoundError(BackscrollError):
    """No session matches a ref, or several do."""

    def __init__(self, reason: str, session_id: str | int, *, hint: str = "") -> None:
        super().__init__(reason, hint=hint)
        self.session_id = session_id


class WorkspaceNotFoundError(BackscrollError):
    """No session belongs to a workspace."""

    def __init__(self, reason: str, workspace: str, *, hint: str = "") -> None:
        super().__init__(reason, hint=hint)
        self.workspace = workspace


class RepositoryError(_DataError):
    """A folder is not in a git repository, or git is missing or fails."""


class CommitNotFoundError(BackscrollError):
    """No commit matches a hash or name."""

    def __init__(self, reason: str, revision: str, *, hint: str = "") -> None:
        super().__init__(reason, hint=hint)
        self.revision = revision


class DestinationError(_DataError):
    """A path cannot be written to."""


class UnknownStoreVersionError(_DataError):
    """A tool's store has a layout that is not known well enough to change it."""


class TransferError(BackscrollError):
    """A session cannot be restored, moved or copied. ``code`` is stable and compared in code."""

    def __init__(self, reason: str, session_id: str, code: str = "failed", *, hint: str = "") -> None:
        super().__init__(reason, hint=hint)
        self.session_id = session_id
        self.code = code


class ToolRunningError(BackscrollError):
    """A running process has open what would be changed."""

    def __init__(self, message: str, process_id: int | None = None) -> None:
        super().__init__(message)
        self.process_id = process_id


class ChangeConflictError(_DataError):
    """A file or row is not as a planned change, or its undo, expects."""


class ChangeNotFoundError(BackscrollError):
    """No recorded change has this id, several do, or it cannot be undone again."""

    def __init__(self, message: str, change_id: str) -> None:
        super().__init__(message)
        self.change_id = change_id


class BackupError(_DataError):
    """A backup cannot be created."""


class InvalidBackupError(BackupError):
    """A file is not a backup, is damaged, or lacks a backup that it depends on."""


class RestoreError(BackupError):
    """A backup cannot be restored."""
