"""Record counts and problems of the units that the tools still have, as of the last sync."""

import sqlite3

from backscroll.model import Origin, Problem
from backscroll.model.problem import SourceCounts

__all__ = ["count_current_problems", "read_current_problems", "read_source_counts"]

_COUNTS = """
select source, root, count(*), coalesce(sum(json_extract(record_counts, '$.records')), 0),
    coalesce(sum(json_extract(record_counts, '$.parsed')), 0),
    coalesce(sum(json_extract(record_counts, '$.ignored')), 0),
    coalesce(sum(json_extract(record_counts, '$.problems')), 0)
from unit where not is_gone group by source, root
"""
# The condition on the text skips nearly all units: few have unknown types.
_UNKNOWN = """
select u.source, u.root, e.key, sum(e.value)
from unit u, json_each(u.record_counts, '$.unknown') e
where not u.is_gone and instr(u.record_counts, '"unknown":{}') = 0
group by u.source, u.root, e.key order by e.key
"""
_PROBLEMS = "from problem p join unit u on u.id = p.unit_id where not u.is_gone"


def read_source_counts(db: sqlite3.Connection) -> dict[tuple[str, str], SourceCounts]:
    """Return the counts of each root, by source and path."""
    found = {
        (source, root): SourceCounts(
            source=source,
            path=root,
            units=units,
            records=records,
            parsed=parsed,
            ignored=ignored,
            problems=problems,
        )
        for source, root, units, records, parsed, ignored, problems in db.execute(_COUNTS)
    }
    for source, root, name, count in db.execute(_UNKNOWN):
        found[source, root].unknown[name] = count
    return found


def count_current_problems(db: sqlite3.Connection) -> int:
    """Return the number of problems."""
    return int(db.execute(f"select count(*) {_PROBLEMS}").fetchone()[0])


def read_current_problems(db: sqlite3.Connection, limit: int) -> list[Problem]:
    """Return the first problems, by path."""
    rows = db.execute(
        f"select p.path, p.place, p.code, p.reason {_PROBLEMS} order by p.path, p.rowid limit ?", [limit]
    )
    return [Problem(Origin(path, place), code, reason) for path, place, code, reason in rows]
