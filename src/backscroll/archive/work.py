"""What each tool and each model did in each quarter of an hour."""

import sqlite3

from backscroll.archive.words import FIXED

__all__ = ["QUARTER", "UNDATED", "write_work"]

QUARTER = 900_000  # milliseconds: the largest span that lies within one day in every time zone
UNDATED = -1  # the quarter of what has no time

_FIXED = {**FIXED, "QUARTER": QUARTER, "UNDATED": UNDATED}
_MESSAGES = (
    "insert into work (account, quarter, tool, model, messages, calls, failures)"
    " select account, coalesce(at / {QUARTER}, {UNDATED}), iif(role = {tool}, coalesce(tool, 0), 0),"
    " coalesce(model, 0), count(*), sum(role = {tool}),"
    " sum(role = {tool} and coalesce(status, 0) = {failed})"
    " from message m where account = ? and is_active and role <> {system} and copied_from is null"
    " and (role = {tool} or model is not null){{anew}} group by 2, 3, 4"
).format_map(_FIXED)
_EDITS = (
    "insert into work (account, quarter, tool, model, added, removed, decided, accepted)"
    " select e.account, coalesce(m.at / {QUARTER}, {UNDATED}), coalesce(m.tool, 0), coalesce(m.model, 0),"
    " sum(iif(coalesce(m.status, 0) = {completed}, e.added, 0)),"
    " sum(iif(coalesce(m.status, 0) = {completed}, e.removed, 0)),"
    " sum(m.decision is not null), sum(coalesce(m.decision, 0) = {accepted})"
    " from edit e cross join message m on m.account = e.account and m.position = e.position"
    " where e.account = ? and m.is_active and m.copied_from is null{{anew}} group by 2, 3, 4"
    " on conflict (account, quarter, tool, model) do update set added = excluded.added,"
    " removed = excluded.removed, decided = excluded.decided, accepted = excluded.accepted"
).format_map(_FIXED)


def write_work(db: sqlite3.Connection, account: int, anew: str) -> None:
    """Count anew what was done in an account, of messages that meet a further condition."""
    db.execute("delete from work where account = ?", [account])
    db.execute(_MESSAGES.format(anew=anew), [account])
    db.execute(_EDITS.format(anew=anew), [account])
