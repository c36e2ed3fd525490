"""The context of one call, and the options of the server process."""

from collections.abc import Callable
from threading import Event
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from backscroll.documents import make_filter
from backscroll.errors import UsageError
from backscroll.history import Redactor
from backscroll.history.history import History
from backscroll.mcp.tools.plans import PlanStore
from backscroll.model.export import SecretLocation
from backscroll.model.message import Message
from backscroll.model.session import Filter, SessionSummary

T = TypeVar("T")


class ServerOptions(Struct, frozen=True, kw_only=True):
    """Options that apply to all calls."""

    is_redacted: bool = True  # replace secrets in results
    is_structured: bool = False  # results have documents
    allow_writes: bool = False  # offer the tools that change files
    command: tuple[str, ...] = ("backscroll",)  # starts the command line with the same archive and roots


class CallCancelledError(Exception):
    """The client cancelled the call."""


class InternalError(Exception):
    """An unexpected exception. Its message may contain history and is not passed on."""


class Call:
    """History, redaction, cancellation and progress of one call."""

    def __init__(
        self,
        history: History,
        *,
        options: ServerOptions,
        plans: PlanStore,
        client: str | None,
        cancelled: Event,
        report: Callable[[int, int], None],
    ) -> None:
        self.history = history
        self.options = options
        self.plans = plans
        self.client = client  # name of the program that calls, if it says so
        self.redactor = Redactor() if options.is_redacted else None
        self._cancelled = cancelled
        self._report = report

    def filter(self, arguments: Struct) -> Filter:
        """Return the filters among the arguments of a tool.

        Raises `WorkspaceNotFoundError` for an unknown workspace, because an empty result would mislead.
        """
        values = asdict(arguments)
        filter_ = make_filter(values)
        if filter_.workspace is not None:
            self.history.find_workspace(filter_.workspace)
        if filter_.since and filter_.until and filter_.since >= filter_.until:
            raise UsageError(f"since ({values['since']}) is not before until ({values['until']})")
        return filter_

    def report_progress(self, done: int, total: int) -> None:
        """Report progress. Raise `CallCancelledError` if the call was cancelled."""
        if self._cancelled.is_set():
            raise CallCancelledError
        self._report(done, total)

    def learn_secrets(self, summary: SessionSummary) -> None:
        """Collect the named secrets of a session, so that they are redacted everywhere in it."""
        if self.redactor is not None:
            self.history.learn_secrets(self.redactor, summary)

    def redact_summary(self, summary: SessionSummary) -> SessionSummary:
        return summary if self.redactor is None else self.redactor.redact_summary(summary)

    def redact_message(self, message: Message, ref: str, position: int) -> Message:
        return message if self.redactor is None else self.redactor.redact_message(message, ref, position)

    def redact_value(self, value: T, ref: str) -> T:
        """Redact all strings in a struct."""
        if self.redactor is None:
            return value
        redacted = self.redactor.redact_value(msgspec.to_builtins(value), SecretLocation(ref, None))
        return msgspec.convert(redacted, type(value))

    def redact_text(self, text: str, ref: str, position: int | None = None) -> str:
        return (
            text if self.redactor is None else self.redactor.redact_text(text, SecretLocation(ref, position))
        )
