"""Growth of the history by month: sessions, messages, and bytes of original files and rows."""

import sqlite3
from collections import defaultdict
from datetime import datetime, tzinfo

from backscroll.model.statistics import MonthGrowth

__all__ = ["read_growth"]

_SESSIONS = "select started_at, message_count from conversations where visibility in ('listed', 'archived')"
# The originals of a unit belong to its oldest session. Some units, such as lists of titles, have none.
_ORIGINALS = (
    "select (select min(c.started_at) from fragment_session f join conversations c"
    " on c.external_id = f.session_external_id and c.platform = f.platform where f.unit_id = o.unit_id),"
    " o.bytes from (select unit_id, sum(size) as bytes from (select unit_id, size from raw_segment"
    " union all select unit_id, size from raw_row) group by unit_id) o where o.bytes is not null"
)


def read_growth(db: sqlite3.Connection, zone: tzinfo | None = None) -> list[MonthGrowth]:
    """Return all months of a zone or of local time, oldest first. The row without a month is the last one."""
    sums: defaultdict[str | None, list[int]] = defaultdict(lambda: [0, 0, 0])
    for started_at, messages in db.execute(_SESSIONS):
        month = sums[_month(started_at, zone)]
        month[0] += 1
        month[1] += messages
    for started_at, size in db.execute(_ORIGINALS):
        sums[_month(started_at, zone)][2] += size
    return [
        MonthGrowth(month, *counts)
        for month, counts in sorted(sums.items(), key=lambda item: (item[0] is None, item[0] or ""))
    ]


def _month(at: str | None, zone: tzinfo | None) -> str | None:
    return datetime.fromisoformat(at).astimezone(zone).strftime("%Y-%m") if at is not None else None
