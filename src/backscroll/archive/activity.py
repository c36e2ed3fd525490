"""What was done in each quarter of an hour: counted when a session is told, so that years add up at once."""

import sqlite3
from collections.abc import Iterable, Sequence

from backscroll.archive.figures import not_before
from backscroll.archive.words import FIXED
from backscroll.archive.work import QUARTER, UNDATED, write_work

__all__ = ["PAUSE", "write_activity"]

PAUSE = 300_000  # milliseconds without a message after which nobody was at work

# A forked subagent's file begins with the response that started it, under a new id; it counts in the session.
_NOT_REPEATED = (
    "not exists (select 1 from message o join account p on p.number = o.account"
    " where o.call = m.call and not p.is_agent)"
    " and m.record not in (select r.record from response r where r.account = m.account and r.is_copy = 1)"
)

_FIXED = {**FIXED, "QUARTER": QUARTER, "UNDATED": UNDATED}
_MESSAGES = (
    "insert into activity (account, quarter, messages, agent_messages, prompts, calls, failures)"
    " select account, coalesce(at / {QUARTER}, {UNDATED}),"
    " sum(is_active and role <> {system} and agent_id is null),"
    " sum(is_active and role <> {system} and agent_id is not null),"
    " sum(is_active and role = {user} and agent_id is null and coalesce(kind, {queued}) = {queued}),"
    " sum(is_active and role = {tool}),"
    " sum(is_active and role = {tool} and coalesce(status, 0) = {failed})"
    " from message m where account = ? and copied_from is null{{anew}} group by 1, 2"
).format_map(_FIXED)
_TIMES = (
    "select at from message m where account = ? and copied_from is null and at is not null{anew}"
    " order by position"
)
_EDITS = (
    "insert into activity (account, quarter, added, removed, decided, accepted)"
    " select account, quarter, sum(added), sum(removed), sum(decided), sum(accepted) from work"
    " where account = ? group by quarter having sum(added + removed + decided)"
    " on conflict (account, quarter) do update set added = excluded.added, removed = excluded.removed,"
    " decided = excluded.decided, accepted = excluded.accepted"
)


def write_activity(db: sqlite3.Connection, accounts: Sequence[int]) -> None:
    """Count anew what was done in the accounts of a session; what another session did first counts there."""
    for account, anew in not_before(accounts):
        (is_agent,) = db.execute("select is_agent from account where number = ?", [account]).fetchone()
        anew += f" and {_NOT_REPEATED}" if is_agent else ""
        db.execute("delete from activity where account = ?", [account])
        db.execute(_MESSAGES.format(anew=anew), [account])
        active = _active(at for (at,) in db.execute(_TIMES.format(anew=anew), [account]))
        db.executemany(
            "update activity set active = ? where account = ? and quarter = ?",
            [(spent, account, quarter) for quarter, spent in active.items()],
        )
        write_work(db, account, anew)
        db.execute(_EDITS, [account])


def _active(times: Iterable[int]) -> dict[int, int]:
    """The milliseconds between neighbours that are not far apart, by the quarter of the later one.

    Times are not always in order: what lies before the latest one so far was counted already.
    """
    active: dict[int, int] = {}
    latest: int | None = None
    for at in times:
        if latest is not None and at <= latest:
            continue
        if latest is not None and at - latest < PAUSE:
            active[at // QUARTER] = active.get(at // QUARTER, 0) + at - latest
        latest = at
    return active
