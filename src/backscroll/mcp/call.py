"""One call while it is being answered."""

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

__all__ = ["Call", "CrashedError", "StoppedError", "moments"]

T = TypeVar("T")


class StoppedError(Exception):
    """Whoever asked does not want to know any more."""


class CrashedError(Exception):
    """Something that nobody expected; what it said may hold anything, and is not passed on."""


class Call:
    """The history to answer from, whether to show secrets, and whether the answer is still wanted."""

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
        """What tools that list sessions are asked, as a filter. A workspace that is not there is an error."""
        self.check_workspace(workspace)
        begin, end = moments(since, until)
        return Filter(workspace=workspace, source=source, since=begin, until=end)

    def check_workspace(self, workspace: str | None) -> None:
        """Raises `WorkspaceNotFoundError` when no session was held there: nothing found would mislead."""
        if workspace is not None:
            self.history.find_workspace(workspace)

    def step(self, done: int, total: int) -> None:
        """Say how far it is. Raises `StoppedError` when the call was cancelled."""
        if self._stop.is_set():
            raise StoppedError
        self._report(done, total)

    def learn(self, summary: SessionSummary) -> None:
        """Take note of a session's secrets: one that has a name once is then known where it has none."""
        if self.redactor is not None:
            self.history.learn_secrets(self.redactor, summary)

    def summary(self, summary: SessionSummary) -> SessionSummary:
        """A summary that may be shown."""
        return summary if self.redactor is None else self.redactor.redact_summary(summary)

    def message(self, message: Message, ref: str, position: int) -> Message:
        """A message that may be shown."""
        return message if self.redactor is None else self.redactor.redact_message(message, ref, position)

    def value(self, value: T, ref: str) -> T:
        """A struct of any kind that may be shown, with all that is in it."""
        if self.redactor is None:
            return value
        clean = self.redactor.redact_value(msgspec.to_builtins(value), SecretLocation(ref, None))
        return msgspec.convert(clean, type(value))

    def text(self, text: str, ref: str, position: int | None = None) -> str:
        """A text that may be shown."""
        return (
            text if self.redactor is None else self.redactor.redact_text(text, SecretLocation(ref, position))
        )


def moments(since: str | None, until: str | None) -> tuple[datetime | None, datetime | None]:
    """The first moment that is wanted, and the first that is too late."""
    begin, end = _span(since), _span(until)
    if begin and end and begin[0] >= end[1]:
        raise UsageError(f"since ({since}) is not before until ({until}): nothing is between them")
    return begin[0] if begin else None, end[1] if end else None


def _span(day: str | None) -> tuple[datetime, datetime] | None:
    if day is None:
        return None
    span = parse_date_range(day, datetime.now(UTC))
    if span is None:
        raise UsageError(f"{day!r} is no date; write it like 2026-10-03, 2026-10, yesterday or 7d")
    return span
