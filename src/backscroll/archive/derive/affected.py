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
    db.execute("create temp table if not exists changed (account integer primary key, compared integer)")
    db.execute("delete from changed")
    db.executemany(
        "insert or ignore into changed select number, compared from account where number = ?",
        [(number,) for number in accounts],
    )
    _find_shared(db)
    for query in (
        "select platform, session from kin where number in (select account from changed)",
        "select distinct a.platform, a.session from shared s cross join message m on m.record = s.record"
        " join kin a on a.number = m.account",
        "select distinct a.platform, a.session from repeated r cross join response o on o.id = r.id"
        " join kin a on a.number = o.account",
        "select distinct a.platform, a.session"
        " from changed c cross join account own on own.number = c.account"
        " cross join naming n on n.unit = own.unit cross join message m on m.record = n.record"
        " join kin a on a.number = m.account",
        "select distinct p.platform, p.id from changed c cross join account own on own.number = c.account"
        " cross join link l on l.unit = own.unit join account a on a.id = l.agent_id and a.is_agent"
        " join account p on p.id = a.parent_id and not p.is_agent and p.platform = a.platform",
    ):
        found |= {SessionKey(platform, id_) for platform, id_ in db.execute(query)}
    return found | _find_forks(db)


def _find_forks(db: sqlite3.Connection) -> set[SessionKey]:
    """The sessions forked from a changed one that have something of it as theirs.

    It was not there before, or had no answer to a call: `copies` decides anew whose that is.
    """
    changed = db.execute(
        "select w.number from changed c cross join account own on own.number = c.account"
        " cross join word w on w.text = own.id where own.messages and not own.is_agent"
    ).fetchall()
    if not changed:
        return set()
    numbers = f"({', '.join(str(number) for (number,) in changed)})"
    copied = f"forked_from in {numbers} and forked_from is not null and copied_from is null"
    forks = db.execute(
        "select distinct a.platform, a.session from message m indexed by message_fork"  # noqa: S608
        f" cross join kin a on a.number = m.account where {copied}"
    ).fetchall()
    if forks:
        db.execute(
            f"update message indexed by message_fork set copied_from = forked_from where {copied}"  # noqa: S608
        )
    return {SessionKey(platform, id_) for platform, id_ in forks}


def _find_shared(db: sqlite3.Connection) -> None:
    """The records and the responses of changed accounts that other accounts have too, or had."""
    db.execute("create temp table if not exists shared (record integer primary key)")
    db.execute("create temp table if not exists repeated (id integer primary key)")
    db.execute("delete from shared")
    db.execute("delete from repeated")
    db.execute(
        "insert or ignore into shared select m.record from changed c cross join message m"
        " on m.account = c.account and m.position >= c.compared where exists"
        " (select 1 from message o where o.record = m.record and o.account <> m.account)"
    )
    db.execute(
        "insert or ignore into repeated select r.id from changed c cross join response r"
        " on r.account = c.account where (c.compared = 0 or r.is_copy is null) and (r.is_copy = 1"
        " or exists (select 1 from response o where o.id = r.id and o.account <> r.account))"
    )


def settle(db: sqlite3.Connection) -> None:
    """Note that the changed accounts have been compared with all others, and their sessions told."""
    db.execute(
        "update account set is_settled = 1, compared = messages where number in (select account from changed)"
    )


def _find_parents(db: sqlite3.Connection) -> set[SessionKey]:
    """Whose those subagents are that do not say: a session names them, or a call of its started them.

    Where that has changed, returns the sessions that they were told with, and those that they belong to now.
    """
    unsaid = (
        "select platform, number, coalesce(found_parent, id) from account"
        " where is_agent = 1 and parent_id is null"
    )
    before = {(platform, number): session for platform, number, session in db.execute(unsaid)}
    db.execute(
        "update account set found_parent = coalesce("
        " (select p.id from child c join account p on p.number = c.account where c.id = account.id"
        "  order by p.id limit 1),"
        " (select s.id from link l join message m on m.call = l.call"
        "  join account s on s.number = m.account and not s.is_agent where l.agent_id = account.id"
        "  order by l.strength, s.id limit 1)) where is_agent = 1 and parent_id is null"
    )
    changed: set[SessionKey] = set()
    for platform, number, session in db.execute(unsaid):
        if session != before[platform, number]:
            changed |= {SessionKey(platform, session), SessionKey(platform, before[platform, number])}
    return changed
