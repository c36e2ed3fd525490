"""Copies of sessions that `undo` removed from the tool. They stay in the archive and are not listed."""

import sqlite3
from collections.abc import Iterable

from backscroll.archive.session_key import SessionKey

__all__ = ["is_undone_copy", "mark_undone_copies", "undone_copies_of", "undone_fragments"]


def mark_undone_copies(db: sqlite3.Connection, sessions: Iterable[SessionKey]) -> None:
    """Record undone copies. The caller opens a transaction and derives sessions afterwards."""
    db.executemany("insert or ignore into undone_copy values (?, ?)", sessions)
    # Their messages are compared with those of other sessions again.
    db.executemany(
        "update fragment set is_derived = 0, compared_count = 0 where id = ?",
        [(id_,) for id_ in undone_fragments(db)],
    )


def is_undone_copy(db: sqlite3.Connection, session: SessionKey) -> bool:
    """Return whether a session was a copy that `undo` has removed."""
    query = "select 1 from undone_copy where platform = ? and external_id = ?"
    return db.execute(query, session).fetchone() is not None


def undone_fragments(db: sqlite3.Connection) -> frozenset[int]:
    """Return the ids of the fragments of all undone copies and their subagents."""
    if db.execute("select 1 from undone_copy limit 1").fetchone() is None:
        return frozenset()
    rows = db.execute(
        "select fragment_id from fragment_session where (platform, session_external_id) in undone_copy"
    )
    return frozenset(id_ for (id_,) in rows)


def undone_copies_of(db: sqlite3.Connection, session: SessionKey) -> list[SessionKey]:
    """Return the undone copies that repeat messages of a session."""
    rows = db.execute(
        "select distinct c.platform, c.external_id from undone_copy c"
        " join fragment_session f on f.platform = c.platform and f.session_external_id = c.external_id"
        " join message m on m.fragment_id = f.fragment_id"
        " join string s on s.id = m.copied_from_string_id where c.platform = ? and s.text = ?",
        session,
    )
    return [SessionKey(*row) for row in rows]
