"""What became of sessions, told from what the event log says of the units that they were read from."""

import sqlite3
from datetime import UTC, datetime

from backscroll.model.events import EventLog, SessionEvent

__all__ = ["ledger"]

# The last that was noticed of each session. What vanished counts for as long as all of it is gone, what was
# overwritten for as long as there is something that only a former state of it holds. The index is used only
# where its condition is repeated word for word; without it every time that a file grew is looked at.
_EVENTS = """
with noticed as materialized (
    select unit_id, at, code from source_event indexed by source_event_session
    where code in ('vanished', 'returned', 'overwritten') and at >= ?
)
select c.source, c.external_id, e.code, max(e.at)
from (
    select s.platform, s.session_external_id, n.code, n.at
    from noticed n join fragment_session s on s.unit_id = n.unit_id where n.code in ('vanished', 'returned')
    union all
    select s.platform, s.session_external_id, n.code, n.at
    from noticed n join fragment f on f.unit_id = n.unit_id and f.status <> 'current'
    join fragment_session s on s.fragment_id = f.id
    where n.code = 'overwritten'
) e
join conversations c on c.platform = e.platform and c.external_id = e.session_external_id
where c.visibility in ('listed', 'archived')
    and case e.code when 'vanished' then c.is_gone when 'returned' then not c.is_gone else 1 end
group by c.number, e.code order by max(e.at), c.number
"""
_PUBLIC = {"returned": "came_back"}


def ledger(db: sqlite3.Connection, since: datetime | None) -> EventLog:
    """What became of sessions since a moment, or ever."""
    rows = db.execute(_EVENTS, [int(since.timestamp() * 1000) if since is not None else 0])
    fates = (
        SessionEvent(f"{source}:{id_}", id_, _PUBLIC.get(code, code), datetime.fromtimestamp(at / 1000, UTC))
        for source, id_, code, at in rows
    )
    return EventLog(since, tuple(fates))
