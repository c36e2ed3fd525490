"""Errors in the protocol's format, each with a next step."""

from typing import Any

from msgspec import Struct

from backscroll import errors
from backscroll.errors import BackscrollError
from backscroll.history import Redactor
from backscroll.model.export import SecretLocation
from backscroll.model.text import sanitize

# Attributes of errors, and the names of the arguments that they are about.
_DETAILS = {"session_id": "ref", "workspace": "workspace", "data_path": "data_path"}
_CHECK = "Inform the user. Backscroll's doctor command shows the cause."


class Failure(Struct, frozen=True):
    """An error type as clients see it."""

    type: str
    code: int  # JSON-RPC error code, used where there is no result
    next: str  # next step

    def document(self, error: BaseException, *, is_redacted: bool = True) -> dict[str, Any]:
        """Return the error as a document. Its message may contain titles, so it is redacted."""
        redactor = Redactor() if is_redacted else None

        def redact(text: str) -> str:
            return (
                redactor.redact_text(text, SecretLocation("", None))
                if redactor is not None
                else sanitize(text)
            )

        # Without the hint, which names a command of the command line.
        message = error.reason if isinstance(error, BackscrollError) else str(error)
        document: dict[str, Any] = {"type": self.type, "message": redact(message), "next": self.next}
        if isinstance(error, BackscrollError):
            document["name"] = type(error).__name__
        for attribute, name in _DETAILS.items():
            if getattr(error, attribute, None):
                document[name] = redact(str(getattr(error, attribute)))
        return document


INVALID_ARGUMENTS = Failure("invalid_arguments", -32602, "Correct the arguments and call again.")

# By error class. The most specific class of an error is used.
_FAILURES: dict[type[BaseException], Failure] = {
    errors.SessionNotFoundError: Failure(
        "session_not_found",
        -32002,
        "Use a ref from recall, search_sessions or list_sessions; for a subagent, from get_session.",
    ),
    errors.WorkspaceNotFoundError: Failure(
        "workspace_not_found",
        -32002,
        "Use a path from list_workspaces. Where workspace is optional, omit it to include all sessions.",
    ),
    errors.DatabaseLockedError: Failure(
        "locked", -32003, "Another program has locked the database. Retry in a few seconds."
    ),
    errors.DataNotFoundError: Failure("data_not_found", -32002, _CHECK),
    errors.DatabaseUnreadableError: Failure("unreadable", -32004, _CHECK),
    errors.ArchiveError: Failure("archive", -32005, _CHECK),
    errors.BackupError: Failure(
        "backup", -32006, "Choose another file or folder, or free disk space. Then call again."
    ),
    errors.InvalidBackupError: Failure(
        "invalid_backup", -32006, "Check the path. validate_backup shows which files are damaged."
    ),
    errors.RestoreError: Failure(
        "restore", -32006, "Nothing was changed. Correct the arguments and call without plan_id."
    ),
    errors.ToolRunningError: Failure(
        "tool_running", -32003, "Ask the user to close the program that is named. Then call again."
    ),
    errors.ChangeConflictError: Failure(
        "conflict", -32003, "Nothing was changed. Call without plan_id to get a new plan."
    ),
    errors.TransferError: Failure("transfer", -32006, "Inform the user. Nothing was changed."),
    errors.UnknownStoreVersionError: Failure(
        "unknown_version", -32006, "Nothing was changed. A newer version of Backscroll may support it."
    ),
    errors.RepositoryError: Failure(
        "repository", -32002, "Check the paths. The repository is a folder in a checkout, or a bare clone."
    ),
    errors.CommitNotFoundError: Failure(
        "commit_not_found", -32002, "Use a hash from git log, or a name such as HEAD."
    ),
    errors.DestinationError: Failure("destination", -32006, "Choose another path, or check its permissions."),
    errors.UsageError: INVALID_ARGUMENTS,
    errors.BackscrollError: Failure("backscroll", -32000, _CHECK),
}


def failure_for(error: BaseException) -> Failure:
    """Return the failure type of an error."""
    if isinstance(error, errors.ArchiveError) and _is_locked(error.__cause__):
        return _FAILURES[errors.DatabaseLockedError]
    for error_class in type(error).__mro__:
        if error_class in _FAILURES:
            return _FAILURES[error_class]
    return Failure("internal", -32603, f"Retry once. If it fails again: {_CHECK[:1].lower()}{_CHECK[1:]}")


def _is_locked(cause: BaseException | None) -> bool:
    """Return whether another process locked the archive for too long."""
    return str(getattr(cause, "sqlite_errorname", "")).startswith("SQLITE_BUSY")
