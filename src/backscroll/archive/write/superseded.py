"""What a unit told before it was told anew: of that, what it no longer tells is kept."""

import sqlite3

from backscroll.archive.derive.session_rows import write_vanished
from backscroll.archive.query.messages import messages_in
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.delta import release_accounts
from backscroll.archive.write.closings import keep_title
from backscroll.archive.write.units import SET_ASIDE
from backscroll.model.merge_messages import texts_of

__all__ = ["settle_former"]

_STAND_INS = ("missing", "recovered")  # for a message that was not yet, or no longer, where it belongs


def settle_former(db: sqlite3.Connection, unit: int, *, is_appended: bool) -> int:
    """After a unit was told anew, or more of it: of what it told before, keep only what it no longer tells.

    A session of which it tells nothing any more stays as if the unit had vanished. Returns how many messages
    vanished from it and were kept.
    """
    kept = 0
    if not is_appended:
        _keep_unchanged(db, unit)
    former = db.execute(
        "select number, platform, id, parent_id, store, closing from account where unit = ? and is_former",
        [unit],
    ).fetchall()
    for account, platform, id_, parent, store, closing in former:
        # A session may turn out to be a subagent once it is known who started it.
        told = db.execute(
            "select number, store = ? and messages > 0 from account indexed by account_id"
            " where unit = ? and id = ? and platform = ? and not is_former"
            " order by 2 desc, parent_id is ? desc, number",
            [store, unit, id_, platform, parent],
        ).fetchone()
        new = told if told is not None and told[1] else None
        if new is not None:
            _forget_retold(db, account, new[0])
        left = db.execute("select count(*) from message where account = ?", [account]).fetchone()[0]
        if not left and told is not None:
            keep_title(db, closing, told[0])
            gone, now = _session_of(db, account), _session_of(db, told[0])
            release_accounts(db, [account])
            db.execute("delete from account where number = ?", [account])
            if gone != now:
                write_vanished(db, gone)
            continue
        kept += left
        db.execute(
            "update account set is_settled = 0, is_former = 1, compared = 0 where number = ?", [account]
        )
        if new is not None:
            _leave_responses(db, account)
            db.execute("update message set is_active = 0 where account = ?", [account])
            db.execute("delete from edit where account = ?", [account])
    return kept


def _session_of(db: sqlite3.Connection, account: int) -> SessionKey:
    """The session that an account tells of, or of a subagent of."""
    return SessionKey(*db.execute("select platform, session from kin where number = ?", [account]).fetchone())


def _leave_responses(db: sqlite3.Connection, account: int) -> None:
    """Let the responses of a former account count in those that have them, too."""
    others = (
        "from response r cross join response o on o.id = r.id and o.account <> r.account where r.account = ?"
    )
    rows = db.execute(f"select o.account, o.id {others}", [account]).fetchall()
    db.executemany("update response set is_copy = null where account = ? and id = ?", rows)
    db.executemany("update account set is_settled = 0 where number = ?", {(other,) for other, _ in rows})
    db.execute("delete from response where account = ?", [account])


def _keep_unchanged(db: sqlite3.Connection, unit: int) -> None:
    """Let accounts that are told as they were stay what they are, so that nothing is derived from them anew.

    A file that tells of all sessions, such as a log of prompts, seldom says something new of more than one.
    """
    pairs = db.execute(
        "select f.number, n.number, u.is_gone from account f"
        " join account n indexed by account_id on n.id = f.id and n.platform = f.platform"
        " and n.unit = f.unit and not n.is_former"
        " and (n.parent_id, n.store, n.messages, n.opening, n.closing) is"
        " (f.parent_id, f.store, f.messages, f.opening, f.closing)"
        " join unit u on u.number = f.unit where f.unit = :unit and f.is_former = :aside"
        " and not exists (select 1 from naming where unit = :unit)"
        " and not exists (select 1 from link where unit = :unit)",
        {"unit": unit, "aside": SET_ASIDE},
    ).fetchall()
    for former, new, was_gone in pairs:
        if not _are_alike(db, former, new):
            continue
        db.execute("delete from account where number = ?", [new])
        db.execute(
            "update account set is_former = 0, is_settled = is_settled and not ? where number = ?",
            [was_gone, former],
        )


def _are_alike(db: sqlite3.Connection, one: int, other: int) -> bool:
    """Whether two accounts have the same messages; those that lean on others are taken to differ."""
    return not any(
        db.execute(
            f"select 1 from (select position, body from {table} where account = :a"  # noqa: S608 - names are ours
            f" except select position, body from {table} where account = :b) limit 1",
            pair,
        ).fetchone()
        for table in ("chunk", "amendment")
        for pair in ({"a": one, "b": other}, {"a": other, "b": one})
    )


def _forget_retold(db: sqlite3.Connection, account: int, new: int) -> None:
    """Take from a former account the rows of the messages that the new one tells, at most with more text."""
    start = _alike_until(db, account, new)
    db.execute("delete from message where account = ? and position < ?", [account, start])
    rows = db.execute(
        "select position, record from message where account = ? and record in"
        " (select record from message where account = ?)",
        [account, new],
    )
    records: dict[int, int] = dict(rows.fetchall())
    stands_in = "select 1 from message join word on number = kind where account = ? and text in (?, ?)"
    if not records and not db.execute(stands_in, [account, *_STAND_INS]).fetchone():
        return
    told = {hash(text) for message in messages_in(db, new, start) for text in texts_of(message)}
    gone = []
    for place, message in enumerate(messages_in(db, account, start), start=start):
        missed = [text for text in texts_of(message) if hash(text) not in told]
        if message.kind in _STAND_INS:
            is_gone = place in records or not missed
        else:
            is_gone = place in records and all(_is_told(db, new, records[place], text) for text in missed)
        if is_gone:
            gone.append((account, place))
    db.executemany("delete from message where account = ? and position = ?", gone)


def _alike_until(db: sqlite3.Connection, account: int, new: int) -> int:
    """Up to where two accounts have the same pieces, so that most of what only grew is not looked at."""
    if db.execute("select 1 from amendment where account in (?, ?)", [account, new]).fetchone():
        return 0
    (first,) = db.execute(
        "select min(f.position) from chunk f left join chunk n on n.account = ? and n.position = f.position"
        " and n.body = f.body where f.account = ? and n.position is null",
        [new, account],
    ).fetchone()
    if first is not None:
        return int(first)
    (messages,) = db.execute("select messages from account where number = ?", [account]).fetchone()
    return int(messages)


def _is_told(db: sqlite3.Connection, account: int, record: int, text: str) -> bool:
    """Whether an account's messages of a record hold a text."""
    rows = db.execute("select position from message where account = ? and record = ?", [account, record])
    for (place,) in rows.fetchall():
        message = next(messages_in(db, account, place))
        if text in message.content or text in ((message.tool and message.tool.result) or ""):
            return True
    return False
