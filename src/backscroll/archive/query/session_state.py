"""Which sessions something happened to, by the ledger; other processes' work is in it too."""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

from backscroll.archive.session_key import SessionKey

__all__ = ["SessionState", "moment", "standings", "touched", "unsettled"]


_STANDINGS = (
    "select c.platform, c.external_id, c.number, c.message_count + coalesce((select sum(s.message_count)"
    " from subagent s where s.platform = c.platform and s.parent_external_id = c.external_id), 0),"
    " c.updated_at, c.title, c.total_tokens, c.is_gone from conversations c"
    " where c.visibility in ('listed', 'archived')"
)


class SessionState(NamedTuple):
    """How far a session has come; two that are equal show the same in a list."""

    number: int
    messages: int  # its subagents' included
    updated_at: str | None
    title: str | None
    total_tokens: int | None
    is_gone: bool


def moment(db: sqlite3.Connection) -> int:
    """Where the ledger ends for now."""
    return int(db.execute("select coalesce(max(id), 0) from source_event").fetchone()[0])


def touched(db: sqlite3.Connection, since: int) -> set[SessionKey]:
    """The sessions that units read or vanished since a moment tell of, a subagent's as the one above it."""
    rows = db.execute(
        "select distinct s.platform, s.session_external_id"
        " from source_event e join fragment_session s on s.unit_id = e.unit_id where e.id > ?",
        [since],
    )
    return {SessionKey(platform, id_) for platform, id_ in rows}


def unsettled(db: sqlite3.Connection) -> set[SessionKey]:
    """The sessions that something was read about which has not been told yet."""
    rows = db.execute(
        "select distinct s.platform, s.session_external_id"
        " from fragment f join fragment_session s on s.fragment_id = f.id where not f.is_derived"
    )
    return {SessionKey(platform, id_) for platform, id_ in rows}


def standings(
    db: sqlite3.Connection, keys: Iterable[SessionKey] | None = None
) -> dict[SessionKey, SessionState]:
    """How far these sessions have come, or all; those that no list shows are left out."""
    if keys is None:
        rows = db.execute(_STANDINGS).fetchall()
    else:
        one = f"{_STANDINGS} and c.platform = ? and c.external_id = ?"
        rows = [row for key in keys for row in db.execute(one, key)]
    return {
        SessionKey(platform, id_): SessionState(number, messages, updated, title, tokens, bool(gone))
        for platform, id_, number, messages, updated, title, tokens, gone in rows
    }
