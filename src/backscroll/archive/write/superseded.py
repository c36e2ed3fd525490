"""What a unit told before it was told anew: of that, what it no longer tells is kept."""

import sqlite3

from backscroll.archive.derive.session_rows import write_vanished
from backscroll.archive.query.message_reader import fragment_messages
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.delta import release_accounts
from backscroll.archive.write.closings import keep_title
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
        "select id, platform, external_id, parent_external_id, store, closing from fragment"
        " where unit_id = ? and status <> 'current'",
        [unit],
    ).fetchall()
    for account, platform, id_, parent, store, closing in former:
        # A session may turn out to be a subagent once it is known who started it.
        told = db.execute(
            "select id, store = ? and message_count > 0 from fragment indexed by fragment_external_id"
            " where unit_id = ? and external_id = ? and platform = ? and status = 'current'"
            " order by 2 desc, parent_external_id is ? desc, id",
            [store, unit, id_, platform, parent],
        ).fetchone()
        new = told if told is not None and told[1] else None
        if new is not None:
            _forget_retold(db, account, new[0])
        left = db.execute("select count(*) from message where fragment_id = ?", [account]).fetchone()[0]
        if not left and told is not None:
            keep_title(db, closing, told[0])
            gone, now = _session_of(db, account), _session_of(db, told[0])
            release_accounts(db, [account])
            db.execute("delete from fragment where id = ?", [account])
            if gone != now:
                write_vanished(db, gone)
            continue
        kept += left
        db.execute(
            "update fragment set is_derived = 0, status = 'superseded', compared_count = 0 where id = ?",
            [account],
        )
        if new is not None:
            _leave_responses(db, account)
            db.execute("update message set is_active = 0 where fragment_id = ?", [account])
            db.execute("delete from edit where fragment_id = ?", [account])
    return kept


def _session_of(db: sqlite3.Connection, account: int) -> SessionKey:
    """The session that an account tells of, or of a subagent of."""
    query = "select platform, session_external_id from fragment_session where fragment_id = ?"
    return SessionKey(*db.execute(query, [account]).fetchone())


def _leave_responses(db: sqlite3.Connection, account: int) -> None:
    """Let the responses of a former account count in those that have them, too."""
    others = (
        "from response r cross join response o on o.response_hash = r.response_hash"
        " and o.fragment_id <> r.fragment_id where r.fragment_id = ?"
    )
    rows = db.execute(f"select o.fragment_id, o.response_hash {others}", [account]).fetchall()
    db.executemany("update response set is_copy = null where fragment_id = ? and response_hash = ?", rows)
    db.executemany("update fragment set is_derived = 0 where id = ?", {(other,) for other, _ in rows})
    db.execute("delete from response where fragment_id = ?", [account])


def _keep_unchanged(db: sqlite3.Connection, unit: int) -> None:
    """Let accounts that are told as they were stay what they are, so that nothing is derived from them anew.

    A file that tells of all sessions, such as a log of prompts, seldom says something new of more than one.
    """
    pairs = db.execute(
        "select f.id, n.id, u.is_gone from fragment f"
        " join fragment n indexed by fragment_external_id on n.external_id = f.external_id"
        " and n.platform = f.platform and n.unit_id = f.unit_id and n.status = 'current'"
        " and (n.parent_external_id, n.store, n.message_count, n.opening, n.closing) is"
        " (f.parent_external_id, f.store, f.message_count, f.opening, f.closing)"
        " join unit u on u.id = f.unit_id where f.unit_id = :unit and f.status = 'pending'"
        " and not exists (select 1 from title_hint where unit_id = :unit)"
        " and not exists (select 1 from subagent_evidence where unit_id = :unit)",
        {"unit": unit},
    ).fetchall()
    for former, new, was_gone in pairs:
        if not _are_alike(db, former, new):
            continue
        db.execute("delete from fragment where id = ?", [new])
        db.execute(
            "update fragment set status = 'current', is_derived = is_derived and not ? where id = ?",
            [was_gone, former],
        )


def _are_alike(db: sqlite3.Connection, one: int, other: int) -> bool:
    """Whether two accounts have the same messages; those that lean on others are taken to differ."""
    return not any(
        db.execute(
            f"select 1 from (select position, body from {table} where fragment_id = :a"  # noqa: S608 - names are ours
            f" except select position, body from {table} where fragment_id = :b) limit 1",
            pair,
        ).fetchone()
        for table in ("message_chunk", "message_update")
        for pair in ({"a": one, "b": other}, {"a": other, "b": one})
    )


def _forget_retold(db: sqlite3.Connection, account: int, new: int) -> None:
    """Take from a former account the rows of the messages that the new one tells, at most with more text."""
    start = _alike_until(db, account, new)
    db.execute("delete from message where fragment_id = ? and position < ?", [account, start])
    rows = db.execute(
        "select position, record_hash from message where fragment_id = ? and record_hash in"
        " (select record_hash from message where fragment_id = ?)",
        [account, new],
    )
    records: dict[int, int] = dict(rows.fetchall())
    stands_in = (
        "select 1 from message join string on id = kind_string_id where fragment_id = ? and text in (?, ?)"
    )
    if not records and not db.execute(stands_in, [account, *_STAND_INS]).fetchone():
        return
    told = {hash(text) for message in fragment_messages(db, new, start) for text in texts_of(message)}
    gone = []
    for place, message in enumerate(fragment_messages(db, account, start), start=start):
        missed = [text for text in texts_of(message) if hash(text) not in told]
        if message.kind in _STAND_INS:
            is_gone = place in records or not missed
        else:
            is_gone = place in records and all(_is_told(db, new, records[place], text) for text in missed)
        if is_gone:
            gone.append((account, place))
    db.executemany("delete from message where fragment_id = ? and position = ?", gone)


def _alike_until(db: sqlite3.Connection, account: int, new: int) -> int:
    """Up to where two accounts have the same pieces, so that most of what only grew is not looked at."""
    if db.execute("select 1 from message_update where fragment_id in (?, ?)", [account, new]).fetchone():
        return 0
    (first,) = db.execute(
        "select min(f.position) from message_chunk f left join message_chunk n"
        " on n.fragment_id = ? and n.position = f.position and n.body = f.body"
        " where f.fragment_id = ? and n.position is null",
        [new, account],
    ).fetchone()
    if first is not None:
        return int(first)
    (messages,) = db.execute("select message_count from fragment where id = ?", [account]).fetchone()
    return int(messages)


def _is_told(db: sqlite3.Connection, account: int, record: int, text: str) -> bool:
    """Whether an account's messages of a record hold a text."""
    rows = db.execute(
        "select position from message where fragment_id = ? and record_hash = ?", [account, record]
    )
    for (place,) in rows.fetchall():
        message = next(fragment_messages(db, account, place))
        if text in message.content or text in ((message.tool and message.tool.result) or ""):
            return True
    return False
