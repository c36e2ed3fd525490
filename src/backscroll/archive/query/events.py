"""What became of sessions, told from what the ledger says of the units that they were read from."""

import sqlite3
from datetime import datetime

from backscroll.model.events import EventLog, SessionEvent

__all__ = ["LOST", "ledger"]

LOST = "rewritten, and what it no longer tells was kept"  # the event of a unit that has lost messages

# The last that was noticed of each session. What vanished counts for as long as all of it is gone, what was
# overwritten for as long as there is something that only a former state of it holds. The index is used only
# where its condition is repeated word for word; without it every time that a file grew is looked at.
_FATES = f"""
with noticed as materialized (
    select unit, at, event from ledger indexed by ledger_fate
    where event in ('vanished', 'came back', '{LOST}') and at >= ?
)
select c.source, c.external_id, f.what, max(f.at)
from (
    select k.platform, k.session, 'vanished' as what, n.at
    from noticed n join kin k on k.unit = n.unit where n.event = 'vanished'
    union all
    select k.platform, k.session, 'came_back', n.at
    from noticed n join kin k on k.unit = n.unit where n.event = 'came back'
    union all
    select k.platform, k.session, 'overwritten', n.at
    from noticed n join account a on a.unit = n.unit and a.is_former join kin k on k.number = a.number
    where n.event = '{LOST}'
) f
join conversations c on c.platform = f.platform and c.external_id = f.session
where c.visibility in ('listed', 'archived')
    and case f.what when 'vanished' then c.is_gone when 'came_back' then not c.is_gone else 1 end
group by c.number, f.what order by max(f.at), c.number
"""  # noqa: S608


def ledger(db: sqlite3.Connection, since: datetime | None) -> EventLog:
    """What became of sessions since a moment, or ever."""
    rows = db.execute(_FATES, [since.isoformat() if since is not None else ""])
    fates = (
        SessionEvent(f"{source}:{id_}", id_, what, datetime.fromisoformat(at))
        for source, id_, what, at in rows
    )
    return EventLog(since, tuple(fates))
