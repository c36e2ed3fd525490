"""What became of sessions in the tools' own stores."""

from datetime import datetime
from typing import Literal, NamedTuple

__all__ = ["EventCode", "EventLog", "SessionEvent"]

EventCode = Literal["vanished", "overwritten", "came_back"]


class SessionEvent(NamedTuple):
    """What became of one session."""

    session_ref: str
    session_id: str
    what: EventCode
    at: datetime  # when it was noticed


class EventLog:
    """What became of sessions since a moment. All of them are kept.

    One has *vanished* when none of the files is left that its content is from. It was *overwritten* when one
    of them lost messages that it had: they stay beside those that are left. It *came back* when what had
    vanished is there again.
    """

    def __init__(self, since: datetime | None, fates: tuple[SessionEvent, ...]) -> None:
        self.since = since  # None: ever
        self.events = fates  # by time

    def count(self, what: EventCode) -> int:
        return sum(fate.what == what for fate in self.events)
