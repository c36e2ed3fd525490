"""Results of a sync: report and status, events of sessions.

No structs: a sync without changes does not load msgspec.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Literal, NamedTuple

Progress = Callable[[int, int], None]  # units of work done, and in total

MIN_ESTIMATE_SECONDS = 3.0  # worker processes start in the first seconds, and little is read
MIN_ESTIMATE_FRACTION = 0.02
MAX_ESTIMATE_SECONDS = 24 * 3600.0


def estimate_remaining_seconds(elapsed_seconds: float, done: int, total: int) -> float | None:
    """Return the remaining time at the speed so far; None while the speed is not known well enough.

    There is no estimate in the first 3 seconds, before 2 % are done, or if it is more than a day.
    """
    if elapsed_seconds < MIN_ESTIMATE_SECONDS or done < max(1, total * MIN_ESTIMATE_FRACTION):
        return None
    remaining = elapsed_seconds * max(0, total - done) / done
    return remaining if remaining <= MAX_ESTIMATE_SECONDS else None


class SyncStatus(NamedTuple):
    """State of the sync, seen from any process."""

    is_complete: bool  # the archive contains everything that the last sync found
    is_running: bool = False
    percent: int | None = None  # None if it has just started
    remaining_seconds: float | None = None  # estimate; None if it is too early for one


class SyncReport:
    """Counts of the units that a sync read, and of the sessions that changed."""

    is_deferred = False  # too much has changed; nothing was read

    def __init__(self) -> None:
        self.units = 0  # checked for changes
        self.new = 0
        self.grew = 0
        self.rewritten = 0
        self.vanished = 0
        self.came_back = 0
        self.reread = 0  # unchanged, but read again by a full sync
        self.sessions = 0  # updated
        self.hook_events = 0  # records of hooks
        self.problems = 0
        self.roots: list[str] = []  # that exist
        self.unreadable: list[str] = []  # files and folders without permission to read them

    def __repr__(self) -> str:
        return f"SyncReport({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @property
    def changed(self) -> int:
        return self.new + self.grew + self.rewritten + self.came_back


EventCode = Literal["vanished", "overwritten", "came_back"]


class SessionEvent(NamedTuple):
    """One event of a session."""

    session_ref: str
    session_id: str
    what: EventCode
    at: datetime  # when it was detected


class EventLog:
    """Events of sessions since a time.

    *vanished*: all files with the session's content are gone. *overwritten*: one of them lost messages,
    which the archive keeps. *came_back*: a vanished session exists again. Nothing is lost in the archive.
    """

    def __init__(self, since: datetime | None, events: tuple[SessionEvent, ...]) -> None:
        self.since = since  # None: all
        self.events = events  # sorted by time

    def count(self, what: EventCode) -> int:
        return sum(event.what == what for event in self.events)
