"""The context of one call: history, redaction, cancellation, progress."""

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event
from typing import TypeVar

import msgspec

from backscroll.errors import UsageError
from backscroll.history import History, Redactor
from backscroll.model import Filter, Message, SessionSummary
from backscroll.model.dates import parse_date_range
from backscroll.model.redaction import SecretLocation

__all__ = ["Call", "CrashedError", "StoppedError", "parse_time_range"]

T = TypeVar("T")


class StoppedError(Exception):
    """The client cancelled the call."""


class CrashedError(Exception):
    """An unexpected exception. Its message may contain history and is not passed on."""


class Call:
    """History, redaction, cancellation and progress of one call."""

    def __init__(
        self, history: History, *, is_redacted: bool, stop: Event, report: Callable[[int, int], None]
    ) -> None:
        self.history = history
        self.redactor = Redactor() if is_redacted else None
        self._stop = stop
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
        begin, end = parse_time_range(since, until)
        return Filter(workspace=workspace, source=source, since=begin, until=end)

    def check_workspace(self, workspace: str | None) -> None:
        """Raise `WorkspaceNotFoundError` for an unknown workspace, because an empty result would mislead."""
        if workspace is not None:
            self.history.find_workspace(workspace)

    def step(self, done: int, total: int) -> None:
        """Report progress. Raise `StoppedError` if the call was cancelled."""
        if self._stop.is_set():
            raise StoppedError
        self._report(done, total)

    def learn(self, summary: SessionSummary) -> None:
        """Collect the named secrets of a session, so that they are redacted everywhere in it."""
        if self.redactor is not None:
            self.history.learn_secrets(self.redactor, summary)

    def summary(self, summary: SessionSummary) -> SessionSummary:
        """Redact a summary."""
        return summary if self.redactor is None else self.redactor.redact_summary(summary)

    def message(self, message: Message, ref: str, position: int) -> Message:
        """Redact a message."""
        return message if self.redactor is None else self.redactor.redact_message(message, ref, position)

    def value(self, value: T, ref: str) -> T:
        """Redact all strings in a struct."""
        if self.redactor is None:
            return value
        clean = self.redactor.redact_value(msgspec.to_builtins(value), SecretLocation(ref, None))
        return msgspec.convert(clean, type(value))

    def text(self, text: str, ref: str, position: int | None = None) -> str:
        """Redact a text."""
        return (
            text if self.redactor is None else self.redactor.redact_text(text, SecretLocation(ref, position))
        )


def parse_time_range(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """Return the start (inclusive) and end (exclusive) of a time range."""
    begin, end = _span(since), _span(until)
    if begin and end and begin[0] >= end[1]:
        raise UsageError(f"since ({since}) is not before until ({until})")
    return begin[0] if begin else None, end[1] if end else None


def _span(day: str | None) -> tuple[datetime, datetime] | None:
    if day is None:
        return None
    span = parse_date_range(day, datetime.now(UTC))
    if span is None:
        raise UsageError(f"{day!r} is not a date. Examples: 2026-10-03, 2026-10, yesterday, 7d")
    return span
