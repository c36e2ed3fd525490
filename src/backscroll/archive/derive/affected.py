"""Sessions, from what units told of them.

Everything here is computed from the archive alone and does not depend on the
order in which units were read: which store a session's content is taken from,
whose a repeated message is, what a session is called, which call started a
subagent, what a response cost and where that counts.
"""

import sqlite3
from collections.abc import Iterable

from backscroll.archive.session_key import SessionKey

__all__ = ["affected", "settle"]


def affected(db: sqlite3.Connection, accounts: Iterable[int]) -> set[SessionKey]:
    """The sessions that changed accounts bear on: their own, those they share with, those they name.

    Of an account that grew, only what is new can be shared with others that did not know it before.
    """
    found = _find_parents(db)
    db.execute(
        "create temp table if not exists changed (fragment_id integer primary key, compared_count integer)"
    )
    db.execute("delete from changed")
    db.executemany(
        "insert or ignore into changed select id, compared_count from fragment where id = ?",
        [(number,) for number in accounts],
    )
    _find_shared(db)
    for query in (
        "select platform, session_external_id from fragment_session"
        " where fragment_id in (select fragment_id from changed)",
        "select distinct a.platform, a.session_external_id"
        " from shared s cross join message m on m.record_hash = s.record_hash"
        " join fragment_session a on a.fragment_id = m.fragment_id",
        "select distinct a.platform, a.session_external_id"
        " from repeated r cross join response o on o.response_hash = r.response_hash"
        " join fragment_session a on a.fragment_id = o.fragment_id",
        "select distinct a.platform, a.session_external_id"
        " from changed c cross join fragment own on own.id = c.fragment_id"
        " cross join title_hint h on h.unit_id = own.unit_id"
        " cross join message m on m.record_hash = h.record_hash"
        " join fragment_session a on a.fragment_id = m.fragment_id",
        "select distinct p.platform, p.external_id"
        " from changed c cross join fragment own on own.id = c.fragment_id"
        " cross join subagent_evidence e on e.unit_id = own.unit_id"
        " join fragment a on a.external_id = e.agent_id and a.is_subagent"
        " join fragment p on p.external_id = a.parent_external_id and not p.is_subagent"
        "  and p.platform = a.platform",
    ):
        found |= {SessionKey(platform, id_) for platform, id_ in db.execute(query)}
    return found | _find_forks(db)


def _find_forks(db: sqlite3.Connection) -> set[SessionKey]:
    """The sessions forked from a changed one that have something of it as theirs.

    It was not there before, or had no answer to a call: `copies` decides anew whose that is.
    """
    changed = db.execute(
        "select s.id from changed c cross join fragment own on own.id = c.fragment_id"
        " cross join string s on s.text = own.external_id where own.message_count and not own.is_subagent"
    ).fetchall()
    if not changed:
        return set()
    numbers = f"({', '.join(str(number) for (number,) in changed)})"
    copied = (
        f"forked_from_string_id in {numbers} and forked_from_string_id is not null"
        " and copied_from_string_id is null"
    )
    forks = db.execute(
        "select distinct a.platform, a.session_external_id from message m indexed by message_fork"  # noqa: S608
        f" cross join fragment_session a on a.fragment_id = m.fragment_id where {copied}"
    ).fetchall()
    if forks:
        db.execute(
            "update message indexed by message_fork"  # noqa: S608
            f" set copied_from_string_id = forked_from_string_id where {copied}"
        )
    return {SessionKey(platform, id_) for platform, id_ in forks}


def _find_shared(db: sqlite3.Connection) -> None:
    """The records and the responses of changed accounts that other accounts have too, or had."""
    db.execute("create temp table if not exists shared (record_hash integer primary key)")
    db.execute("create temp table if not exists repeated (response_hash integer primary key)")
    db.execute("delete from shared")
    db.execute("delete from repeated")
    db.execute(
        "insert or ignore into shared select m.record_hash from changed c cross join message m"
        " on m.fragment_id = c.fragment_id and m.position >= c.compared_count where exists"
        " (select 1 from message o where o.record_hash = m.record_hash and o.fragment_id <> m.fragment_id)"
    )
    db.execute(
        "insert or ignore into repeated select r.response_hash from changed c cross join response r"
        " on r.fragment_id = c.fragment_id where (c.compared_count = 0 or r.is_copy is null)"
        " and (r.is_copy = 1 or exists (select 1 from response o"
        " where o.response_hash = r.response_hash and o.fragment_id <> r.fragment_id))"
    )


def settle(db: sqlite3.Connection) -> None:
    """Note that the changed accounts have been compared with all others, and their sessions told."""
    db.execute(
        "update fragment set is_derived = 1, compared_count = message_count"
        " where id in (select fragment_id from changed)"
    )


def _find_parents(db: sqlite3.Connection) -> set[SessionKey]:
    """Whose those subagents are that do not say: a session names them, or a call of its started them.

    Where that has changed, returns the sessions that they were told with, and those that they belong to now.
    """
    unsaid = (
        "select platform, id, coalesce(inferred_parent_external_id, external_id) from fragment"
        " where is_subagent = 1 and parent_external_id is null"
    )
    before = {(platform, number): session for platform, number, session in db.execute(unsaid)}
    db.execute(
        "update fragment set inferred_parent_external_id = coalesce("
        " (select p.external_id from subagent_link l join fragment p on p.id = l.fragment_id"
        "  where l.external_id = fragment.external_id order by p.external_id limit 1),"
        " (select s.external_id from subagent_evidence e join message m on m.call_hash = e.call_hash"
        "  join fragment s on s.id = m.fragment_id and not s.is_subagent"
        "  where e.agent_id = fragment.external_id"
        "  order by e.strength, s.external_id limit 1)) where is_subagent = 1 and parent_external_id is null"
    )
    changed: set[SessionKey] = set()
    for platform, number, session in db.execute(unsaid):
        if session != before[platform, number]:
            changed |= {SessionKey(platform, session), SessionKey(platform, before[platform, number])}
    return changed
