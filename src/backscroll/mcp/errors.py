"""Errors in the protocol's format, each with a next step."""

from typing import Any

from msgspec import Struct

from backscroll import errors
from backscroll.history import Redactor
from backscroll.model.export import SecretLocation
from backscroll.model.text import sanitize

__all__ = ["INVALID_ARGUMENTS", "Failure", "failure_for"]


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

        document: dict[str, Any] = {"type": self.type, "message": redact(str(error)), "next": self.next}
        for name in ("session_id", "workspace", "data_path"):
            if getattr(error, name, None):
                document[name] = redact(str(getattr(error, name)))
        return document


INVALID_ARGUMENTS = Failure("invalid_arguments", -32602, "Correct the arguments and call again.")

# By error class. The most specific class of an error is used.
_FAILURES: dict[type[BaseException], Failure] = {
    errors.SessionNotFoundError: Failure(
        "session_not_found", -32002, "Use a ref from list_sessions, search_sessions or recall."
    ),
    errors.WorkspaceNotFoundError: Failure(
        "workspace_not_found", -32002, "Use a path from list_workspaces, or a longer suffix."
    ),
    errors.DatabaseLockedError: Failure(
        "locked", -32003, "Another program has locked the database. Retry in a few seconds."
    ),
    errors.DataNotFoundError: Failure("data_not_found", -32002, "Ask the user to run: backscroll doctor"),
    errors.DatabaseUnreadableError: Failure("unreadable", -32004, "Ask the user to run: backscroll doctor"),
    errors.ArchiveError: Failure("archive", -32005, "Ask the user to run: backscroll archive verify"),
    errors.DestinationError: Failure("destination", -32006, "Choose another path, or check its permissions."),
    errors.UsageError: INVALID_ARGUMENTS,
    errors.BackscrollError: Failure("backscroll", -32000, "Ask the user to run: backscroll doctor"),
}


def failure_for(error: BaseException) -> Failure:
    """Return the failure type of an error."""
    if isinstance(error, errors.ArchiveError) and _is_locked(error.__cause__):
        return _FAILURES[errors.DatabaseLockedError]
    for error_class in type(error).__mro__:
        if error_class in _FAILURES:
            return _FAILURES[error_class]
    return Failure("internal", -32603, "Retry. If it persists, ask the user to run: backscroll doctor")


def _is_locked(cause: BaseException | None) -> bool:
    """Return whether another process locked the archive for too long."""
    return str(getattr(cause, "sqlite_errorname", "")).startswith("SQLITE_BUSY")
