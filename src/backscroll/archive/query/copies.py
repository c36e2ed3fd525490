"""Sessions that repeat messages of others. The index contains a copied message only in its first session."""

import sqlite3
from collections import defaultdict

__all__ = ["first_sessions"]


def first_sessions(db: sqlite3.Connection) -> dict[int, set[int]]:
    """Return the ids of all sessions with copied messages, each with the sessions that had them first.

    Reads every row of `message`: 0.2 s for a million messages.
    """
    rows = db.execute(
        "select coalesce(c.number, a.id), coalesce(o.number, b.id) from (select distinct fragment_id,"
        " copied_from_string_id from message where copied_from_string_id is not null) m"
        " join fragment f on f.id = m.fragment_id join string s on s.id = m.copied_from_string_id"
        " left join conversations c on not f.is_subagent and c.external_id = f.external_id"
        " and c.platform = f.platform"
        " left join subagent a on f.is_subagent and a.agent_id = f.external_id and a.platform = f.platform"
        " and a.parent_external_id = coalesce(f.parent_external_id, f.inferred_parent_external_id)"
        " left join conversations o on o.external_id = s.text and o.platform = f.platform"
        " left join subagent b on o.number is null and b.agent_id = s.text and b.platform = f.platform"
    )
    found: defaultdict[int, set[int]] = defaultdict(set)
    for session_id, first_id in rows:
        if session_id is not None and first_id is not None:
            found[session_id].add(first_id)
    return dict(found)
