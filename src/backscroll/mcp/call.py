"""The context of one call: history, redaction, cancellation, progress."""

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event
from typing import TypeVar

import msgspec

from backscroll.errors import UsageError
from backscroll.history import History, Redactor
from backscroll.mcp.options import ServerOptions
from backscroll.mcp.tools.plans import PlanStore
from backscroll.model import Filter, Message, SessionSummary
from backscroll.model.dates import parse_date_range
from backscroll.model.export import SecretLocation

__all__ = ["Call", "CallCancelledError", "InternalError", "parse_time_range"]

T = TypeVar("T")


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

    def filter(
        self,
        *,
        workspace: str | None = None,
        source: str | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> Filter:
        """Return a filter. Raise `WorkspaceNotFoundError` for an unknown workspace."""
        self.check_workspace(workspace)
        start, end = parse_time_range(since, until)
        return Filter(workspace=workspace, source=source, since=start, until=end)

    def check_workspace(self, workspace: str | None) -> None:
        """Raise `WorkspaceNotFoundError` for an unknown workspace, because an empty result would mislead."""
        if workspace is not None:
            self.history.find_workspace(workspace)

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


def parse_time_range(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """Return the start (inclusive) and end (exclusive) of a time range."""
    first, last = _parse_date("since", since), _parse_date("until", until)
    if first and last and first[0] >= last[1]:
        raise UsageError(f"since ({since}) is not before until ({until})")
    return first[0] if first else None, last[1] if last else None


def _parse_date(name: str, date: str | None) -> tuple[datetime, datetime] | None:
    """Return the start and end of a day or month."""
    if date is None:
        return None
    parsed = parse_date_range(date, datetime.now(UTC))
    if parsed is None:
        raise UsageError(f"{name}: {date!r} is not a date. Examples: 2026-10-03, 2026-10, yesterday, 7d")
    return parsed
