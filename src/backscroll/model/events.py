"""Events of sessions in the tools' own stores."""

from datetime import datetime
from typing import Literal, NamedTuple

__all__ = ["EventCode", "EventLog", "SessionEvent"]

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
