"""Queries for events of sessions in the tools' stores, from the event log (table source_event).

All processes write to the same log.
"""

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from backscroll.archive.connection import from_ms, to_ms
from backscroll.archive.session_key import SessionKey
from backscroll.model.sync import EventCode, EventLog, SessionEvent

# The last event of each kind for each session. 'vanished' counts while the session is gone, 'returned' while
# it is not, 'overwritten' while a superseded fragment still has messages of it. SQLite uses the partial index
# only if its condition is repeated literally; without it the query scans all 'grew' events.
_LAST_EVENTS = """
with recent as materialized (
    select unit_id, at, code from source_event indexed by source_event_session
    where code in ('vanished', 'returned', 'overwritten') and at >= ?
)
select c.source, c.external_id, e.code, max(e.at)
from (
    select s.platform, s.session_external_id, r.code, r.at
    from recent r join fragment_session s on s.unit_id = r.unit_id where r.code in ('vanished', 'returned')
    union all
    select s.platform, s.session_external_id, r.code, r.at
    from recent r join fragment f on f.unit_id = r.unit_id and f.status <> 'current'
    join fragment_session s on s.fragment_id = f.id
    where r.code = 'overwritten'
) e
join conversations c on c.platform = e.platform and c.external_id = e.session_external_id
where c.visibility in ('listed', 'archived')
    and case e.code when 'vanished' then c.is_gone when 'returned' then not c.is_gone else 1 end
group by c.number, e.code order by max(e.at), c.number
"""
_EVENT_CODES: dict[str, EventCode] = {
    "vanished": "vanished",
    "returned": "came_back",
    "overwritten": "overwritten",
}
_SESSION_STATES = (
    "select c.platform, c.external_id, c.number, c.message_count + coalesce((select sum(s.message_count)"
    " from subagent s where s.platform = c.platform and s.parent_external_id = c.external_id), 0),"
    " c.updated_at, c.title, c.total_tokens, c.is_gone from conversations c"
    " where c.visibility in ('listed', 'archived')"
)


class SessionState(NamedTuple):
    """The listed values of a session. Equal states look the same in a list."""

    id: int
    message_count: int  # including subagents
    updated_at: str | None
    title: str | None
    total_tokens: int | None
    is_gone: bool


class Events:
    """Queries for the events of sessions, all or since an event."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def log(self, since: datetime | None) -> EventLog:
        """Return the events of sessions since a time, or all of them."""
        rows = self._db.execute(_LAST_EVENTS, [to_ms(since) if since is not None else 0])
        events = (
            SessionEvent(f"{source}:{id_}", id_, _EVENT_CODES[code], from_ms(at))
            for source, id_, code, at in rows
        )
        return EventLog(since, tuple(events))

    def sessions_since(self, event_id: int) -> set[SessionKey]:
        """Return the sessions with events after this one. Events of subagents count for their session."""
        rows = self._db.execute(
            "select distinct s.platform, s.session_external_id"
            " from source_event e join fragment_session s on s.unit_id = e.unit_id where e.id > ?",
            [event_id],
        )
        return {SessionKey(*row) for row in rows}

    def underived_sessions(self) -> set[SessionKey]:
        """Return the sessions with fragments that are stored but not yet derived."""
        rows = self._db.execute(
            "select distinct s.platform, s.session_external_id"
            " from fragment f join fragment_session s on s.fragment_id = f.id where not f.is_derived"
        )
        return {SessionKey(*row) for row in rows}

    def session_states(self, keys: Iterable[SessionKey] | None = None) -> dict[SessionKey, SessionState]:
        """Return the states of these sessions, or of all. Unlisted sessions are omitted."""
        if keys is None:
            rows = self._db.execute(_SESSION_STATES).fetchall()
        else:
            query = f"{_SESSION_STATES} and c.platform = ? and c.external_id = ?"
            rows = [row for key in keys for row in self._db.execute(query, key)]
        return {
            SessionKey(platform, external_id): SessionState(
                id_, message_count, updated_at, title, total_tokens, bool(is_gone)
            )
            for platform, external_id, id_, message_count, updated_at, title, total_tokens, is_gone in rows
        }
