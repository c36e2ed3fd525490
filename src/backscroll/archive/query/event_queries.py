"""Queries for changes of sessions in the tools' stores."""

import sqlite3
from collections.abc import Iterable
from datetime import datetime

from backscroll.archive.query import events, session_state
from backscroll.archive.query.session_state import SessionState
from backscroll.archive.session_key import SessionKey
from backscroll.model.events import EventLog

__all__ = ["Events"]


class Events:
    """The event log: what happened to sessions, ever or since a point."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def log(self, since: datetime | None) -> EventLog:
        """What became of sessions since a moment, or ever."""
        return events.ledger(self._db, since)

    def last_id(self) -> int:
        """Now, as the ledger counts it."""
        return session_state.moment(self._db)

    def sessions_since(self, since: int) -> set[SessionKey]:
        """The sessions that something was read about since a moment, by whichever process."""
        return session_state.touched(self._db, since)

    def underived_sessions(self) -> set[SessionKey]:
        """The sessions that something was read about which has not been told yet."""
        return session_state.unsettled(self._db)

    def session_states(self, keys: Iterable[SessionKey] | None = None) -> dict[SessionKey, SessionState]:
        """How far these sessions have come, or all that a list shows."""
        return session_state.standings(self._db, keys)
