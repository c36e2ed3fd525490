"""What went wrong, typed, and what to do next."""

from typing import Any

from msgspec import Struct

from backscroll import errors
from backscroll.history import Redactor
from backscroll.model.redaction import SecretLocation
from backscroll.model.sanitize import sanitize

__all__ = ["INVALID", "Failure", "failure_of"]


class Failure(Struct, frozen=True):
    """An error as a client is told it."""

    type: str
    code: int  # of JSON-RPC, where there is no result to put it into
    next: str  # what to do about it

    def document(self, error: BaseException, *, is_redacted: bool = True) -> dict[str, Any]:
        """What happened, to what, and what to do next. It may name sessions by their titles."""
        redactor = Redactor() if is_redacted else None

        def clean(text: str) -> str:
            return (
                redactor.redact_text(text, SecretLocation("", None))
                if redactor is not None
                else sanitize(text)
            )

        told: dict[str, Any] = {"type": self.type, "message": clean(str(error)), "next": self.next}
        for name in ("session_id", "workspace", "data_path"):
            if getattr(error, name, None):
                told[name] = clean(str(getattr(error, name)))
        return told


INVALID = Failure("invalid_arguments", -32602, "Correct the arguments as the message says, and call again.")

# The nearest kind of an error counts.
_KINDS: dict[type[BaseException], Failure] = {
    errors.SessionNotFoundError: Failure(
        "session_not_found", -32002, "Take a ref from list_sessions, search_sessions or recall."
    ),
    errors.WorkspaceNotFoundError: Failure(
        "workspace_not_found", -32002, "Take a path from list_workspaces, or write more of it."
    ),
    errors.DatabaseLockedError: Failure(
        "locked", -32003, "Another program holds the database; call again in a few seconds."
    ),
    errors.DataNotFoundError: Failure("data_not_found", -32002, "Check the folders with: backscroll doctor"),
    errors.DatabaseUnreadableError: Failure("unreadable", -32004, "Look at it with: backscroll doctor"),
    errors.ArchiveError: Failure("archive", -32005, "Look at it with: backscroll archive verify"),
    errors.DestinationError: Failure(
        "destination", -32006, "Name another place, or check who may write there."
    ),
    errors.UsageError: INVALID,
    errors.BackscrollError: Failure("backscroll", -32000, "Look at it with: backscroll doctor"),
}


def failure_of(error: BaseException) -> Failure:
    """What kind of error it is; of one that nobody expected, what can be said."""
    if isinstance(error, errors.ArchiveError) and _is_held(error.__cause__):
        return _KINDS[errors.DatabaseLockedError]
    for kind in type(error).__mro__:
        if kind in _KINDS:
            return _KINDS[kind]
    return Failure("internal", -32603, "Call again; if it stays so, run: backscroll doctor")


def _is_held(cause: BaseException | None) -> bool:
    """Whether another process held the archive's file for too long."""
    return str(getattr(cause, "sqlite_errorname", "")).startswith("SQLITE_BUSY")
