"""Whose a message is that several sessions hold: a resume or a fork repeats what was said before it."""

import sqlite3
from typing import NamedTuple

from backscroll.archive.derive.fragments import other_sessions
from backscroll.archive.storage.strings import FIXED, Words

__all__ = ["mark_copies"]

_FAR = 1 << 62
# Messages of which it may have changed whose they are.
_MARKED = (
    "changed c cross join message m on m.fragment_id = c.fragment_id and m.position >= c.compared_count",
    "shared s cross join message m on m.record_hash = s.record_hash",
    "recopied r cross join message m on m.fragment_id = r.fragment_id and m.position >= r.position",
)
# What a fork copied from a session that nobody has.
_IS_ORPHAN = (
    "m.forked_from_string_id is not null and m.copied_from_string_id = m.forked_from_string_id and not exists"
    " (select 1 from string w cross join fragment o on o.external_id = w.text"
    " where w.id = m.forked_from_string_id and o.message_count and not o.is_subagent)"
)
# A call that was copied before it was answered, and that the other session never had an answer to.
_HAS_THE_ANSWER = (
    "m.copied_from_string_id is not null and m.call_hash is not null"  # noqa: S608
    f" and m.status_string_id <> {FIXED['pending']}"
    f" and (select max(o.status_string_id <> {FIXED['pending']}) from message o"
    " join fragment_session s on s.fragment_id = o.fragment_id where o.call_hash = m.call_hash"
    " and s.session_external_id = (select text from string where id = m.copied_from_string_id)) = 0"
)


class _Holder(NamedTuple):
    """An account that holds a record, ranked by how likely it held it first."""

    is_past: bool  # its file has it no longer
    is_forked: bool
    at: int
    is_agent: bool
    names_another: bool
    began: str
    id: str
    account: int


def mark_copies(db: sqlite3.Connection) -> None:
    """Say of every message of the changed accounts that another session held first whose it is.

    One that still has it comes first. Copies are stamped anew, so the earliest time decides; then an account
    whose file calls the line another session's; then the one that began first. What is told nowhere else is
    the session's own all the same.
    """
    rows = db.execute(
        "select m.record_hash, m.fragment_id, f.status <> 'current' and not max(m.is_active),"
        " max(m.forked_from_string_id is not null), min(coalesce(m.at, ?)), f.is_subagent, f.external_id,"
        " coalesce(min(first.at), ?)"
        " from shared s cross join message m on m.record_hash = s.record_hash"
        " join fragment f on f.id = m.fragment_id"
        " left join message first on first.fragment_id = m.fragment_id and first.position = 0"
        " group by m.record_hash, m.fragment_id order by m.record_hash",
        [_FAR, _FAR],
    ).fetchall()
    holders: dict[int, list[_Holder]] = {}
    for record, account, is_past, is_forked, at, is_agent, id_, began in rows:
        holder = _Holder(
            bool(is_past), bool(is_forked), at, bool(is_agent), False, f"{began:020}", id_, account
        )
        holders.setdefault(record, []).append(holder)
    foreign = other_sessions(db, {one.account for held in holders.values() for one in held})
    words = Words(db)
    changes: list[tuple[bool, int | None, int, int]] = []
    for record, held in holders.items():
        ranked = sorted(held, key=lambda one: one._replace(names_another=_names_another(one, held, foreign)))
        owner = ranked[0]
        for holder in ranked:
            is_own = holder.id == owner.id and holder.is_agent == owner.is_agent
            changes.append((is_own, words[owner.id], holder.account, record))
    db.executemany(
        "update message indexed by message_record"
        " set copied_from_string_id = iif(?, forked_from_string_id, ?)"
        " where fragment_id = ? and record_hash = ?",
        changes,
    )
    for is_untold_elsewhere in (_IS_ORPHAN, _HAS_THE_ANSWER):
        for marked in _MARKED:
            query = f"select m.fragment_id, m.position from {marked} where {is_untold_elsewhere}"  # noqa: S608
            found = db.execute(query).fetchall()
            db.executemany(
                "update message set copied_from_string_id = null where fragment_id = ? and position = ?",
                found,
            )


def _names_another(one: _Holder, held: list[_Holder], foreign: dict[int, set[str]]) -> bool:
    return any(other.id in foreign.get(one.account, ()) for other in held if other is not one)
