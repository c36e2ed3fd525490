"""Sessions erased for good, and kept from coming back. What stays is their names."""

import sqlite3
from hashlib import blake2b
from pathlib import PurePath
from typing import Any

from msgspec import Struct

from backscroll.archive.annotations import delete_annotations
from backscroll.archive.derive.cursor_windows import mark_windows_changed, update_windows
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.delta import rebase_fragment_dependents, rebase_unit_dependents
from backscroll.archive.storage.raw_rows import delete_rows
from backscroll.archive.storage.strings import FIXED_STRING_IDS, StringTable
from backscroll.archive.write.exclusions import MIN_DISTINCTIVE_ID_CHARS, SINGLE_SESSION_KINDS

__all__ = ["ForgetResult", "forget", "forget_remainder", "forgotten_sessions", "is_forgotten_unit"]


class ForgetResult(Struct):
    """What was erased."""

    session_id: str
    platform: str
    subagents: int
    messages: int
    units: int  # of which nothing is left
    originals: int  # bytes of files and of rows that were kept
    shared: tuple[str, ...]  # files that tell of other sessions too: their originals are no longer kept
    is_erased: bool = False  # the bytes are gone from the archive's file, not only the rows


def forgotten_sessions(db: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    """The sessions that were forgotten, by platform and id."""
    return frozenset(db.execute("select platform, external_id from forgotten_session").fetchall())


def is_forgotten_unit(db: sqlite3.Connection, path: str, key: str) -> bool:
    """Whether a unit told of nothing but a session that was forgotten."""
    digest = [_digest(path, key)]
    return db.execute("select 1 from forgotten_unit where path_hash = ?", digest).fetchone() is not None


def _digest(path: str, key: str) -> bytes:
    return blake2b(f"{path}\0{key}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def forget_remainder(db: sqlite3.Connection, number: int, kind: str) -> bool:
    """After a unit was read that tells of a forgotten session: keep nothing of the file.

    True when it tells of nothing else, and is not to be read again.
    """
    rebase_unit_dependents(db, number)
    db.execute("delete from raw_segment where unit_id = ?", [number])
    delete_rows(db, number)
    if (
        kind not in SINGLE_SESSION_KINDS
        or db.execute("select 1 from fragment where unit_id = ?", [number]).fetchone()
    ):
        return False
    _forget_unit(db, number)
    return True


def _forget_unit(db: sqlite3.Connection, number: int) -> None:
    """Erase a unit and all that it told, and never read it again."""
    path, key = db.execute("select path, key from unit where id = ?", [number]).fetchone()
    db.execute("insert or ignore into forgotten_unit values (?)", [_digest(path, key)])
    accounts = db.execute("select id from fragment where unit_id = ?", [number]).fetchall()
    rebase_fragment_dependents(db, [account for (account,) in accounts])
    rebase_unit_dependents(db, number)
    delete_rows(db, number)
    db.execute("delete from unit where id = ?", [number])


def forget(db: sqlite3.Connection, session: SessionKey) -> ForgetResult:
    """Erase a session and its subagents; the caller has a transaction open, and derives afterwards.

    Messages that other sessions hold as well stay theirs.
    """
    key = {"platform": session.platform, "id": session.id}
    _choose(db, key)
    agents, messages = db.execute(
        "select count(distinct iif(is_subagent, external_id, null)), coalesce(sum(message_count), 0)"
        " from fragment where id in (select fragment_id from doomed) and status = 'current'"
    ).fetchone()
    alone, shared = _units(db, session)
    erased = ForgetResult(
        session.id,
        session.platform,
        agents,
        messages,
        len(alone),
        sum(_kept(db, number) for number, _ in (*alone, *shared)),
        tuple(path for number, path in shared if _kept(db, number)),
    )
    db.execute("insert or ignore into forgotten_session values (:platform, :id)", key)
    db.execute(
        "insert or ignore into forgotten_session select platform, external_id from fragment"
        " where id in (select fragment_id from doomed) and is_subagent and parent_external_id is null"
    )
    _unsettle(db, session, [number for number, _ in alone])
    _erase_mentions(db, session)
    delete_annotations(db, session)
    _erase_rows(db, key)
    for number, _ in (*alone, *shared):  # before what it leans on
        rebase_unit_dependents(db, number)
        db.execute("delete from raw_segment where unit_id = ?", [number])
    rebase_fragment_dependents(
        db, [number for (number,) in db.execute("select fragment_id from doomed").fetchall()]
    )
    db.execute("delete from fragment where id in (select fragment_id from doomed)")
    for number, _ in alone:
        _forget_unit(db, number)
    for number, _ in shared:
        delete_rows(db, number)
        db.execute("update unit set checkpoint_offset = null, checkpoint_state = null where id = ?", [number])
    _erase_words(db)
    return erased


def _erase_words(db: sqlite3.Connection) -> None:
    """The names of tools, agents and sessions that no row uses any more."""
    used = " union ".join(
        f"select {column}_string_id from {table} where {column}_string_id is not null"  # noqa: S608 - names are ours
        for table, columns in (
            ("message", ("kind", "tool", "model", "agent", "forked_from", "copied_from")),
            ("response", ("model", "speed")),
        )
        for column in columns
    )
    db.execute(
        f"delete from string where id > ? and id not in ({used})",  # noqa: S608 - names are ours
        [len(FIXED_STRING_IDS)],
    )


def _choose(db: sqlite3.Connection, key: dict[str, str]) -> None:
    db.execute("create temp table if not exists doomed (fragment_id integer primary key)")
    db.execute("delete from doomed")
    db.execute(
        "insert into doomed select id from fragment where platform = :platform and (external_id = :id and"
        " (not is_subagent or coalesce(parent_external_id, inferred_parent_external_id) is null)"
        " or is_subagent and coalesce(parent_external_id, inferred_parent_external_id) = :id)",
        key,
    )


def _kept(db: sqlite3.Connection, unit: int) -> int:
    """Bytes of originals, of a file or of rows."""
    row = db.execute(
        "select (select coalesce(sum(size), 0) from raw_segment where unit_id = :unit)"
        " + (select coalesce(sum(size), 0) from raw_row where unit_id = :unit)",
        {"unit": unit},
    ).fetchone()
    return int(row[0])


def _units(
    db: sqlite3.Connection, session: SessionKey
) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """The units that tell of nothing else, and those that do; by number and path.

    A file in the session's own folder is its own, even when nothing in it could be told.
    """
    alone: list[tuple[int, str]] = []
    shared: list[tuple[int, str]] = []
    rows: list[tuple[Any, ...]] = db.execute(
        "select u.id, u.path, u.kind, count(d.fragment_id), count(f.id)"
        " from unit u left join fragment f on f.unit_id = u.id left join doomed d on d.fragment_id = f.id"
        " where u.platform = :platform and (u.key = :id or u.key = '' and instr(u.path, :id)"
        " or u.id in (select unit_id from fragment where id in (select fragment_id from doomed)))"
        " group by u.id",
        {"platform": session.platform, "id": session.id},
    ).fetchall()
    for number, path, kind, own, every in rows:
        is_named = session.id in {PurePath(part).stem for part in PurePath(path).parts}
        if own == every and (is_named or kind in SINGLE_SESSION_KINDS):
            alone.append((number, path))
        elif own:
            shared.append((number, path))
    return alone, shared


def _unsettle(db: sqlite3.Connection, session: SessionKey, units: list[int]) -> None:
    """Have those sessions derived anew that shared messages with this one, or had their titles from it."""
    for column, table in (("record_hash", "message"), ("response_hash", "response")):
        db.execute(
            "update fragment set is_derived = 0, compared_count = 0"  # noqa: S608 - names are ours
            " where id in (select o.fragment_id"
            f" from doomed d cross join {table} m on m.fragment_id = d.fragment_id"
            f" cross join {table} o on o.{column} = m.{column})"
        )
    for number in units:
        db.execute(
            "update fragment set is_derived = 0 where id in (select m.fragment_id from title_hint h"
            " cross join message m on m.record_hash = h.record_hash where h.unit_id = ?)",
            [number],
        )
    word = {"word": StringTable(db)[session.id]}
    db.execute(
        "update fragment set is_derived = 0, compared_count = 0 where id in (select fragment_id from message"
        " where :word in (copied_from_string_id, forked_from_string_id))",
        word,
    )
    db.execute(
        "update message set copied_from_string_id = nullif(copied_from_string_id, :word),"
        " forked_from_string_id = nullif(forked_from_string_id, :word)"
        " where :word in (copied_from_string_id, forked_from_string_id)",
        word,
    )


def _erase_mentions(db: sqlite3.Connection, session: SessionKey) -> None:
    """What other units say of the session: titles, calls that started its subagents, problems."""
    db.execute(
        "delete from title_hint where record_hash in"
        " (select m.record_hash from doomed d join message m using (fragment_id))"
        " and not exists (select 1 from message o where o.record_hash = title_hint.record_hash"
        " and o.fragment_id not in (select fragment_id from doomed))"
    )
    db.execute(
        "delete from subagent_evidence where agent_id in"
        " (select f.external_id from doomed d join fragment f on f.id = d.fragment_id where f.is_subagent)"
    )
    if len(session.id) >= MIN_DISTINCTIVE_ID_CHARS:
        db.execute("delete from problem where instr(path, :id) or instr(place, :id)", {"id": session.id})


def _erase_rows(db: sqlite3.Connection, key: dict[str, str]) -> None:
    """The rows that were derived, with the window when no other session was held in it."""
    own = "platform = :platform and external_id = :id"
    db.execute(
        f"insert into index_queue (session_number) select number from conversations where {own}"  # noqa: S608
        " union select id from subagent where platform = :platform and parent_external_id = :id"
        " on conflict (session_number) do update set first_position = 0, revision = revision + 1",
        key,
    )
    mark_windows_changed(db, [SessionKey(key["platform"], key["id"])])
    db.execute(f"delete from conversations where {own}", key)  # noqa: S608
    db.execute("delete from subagent where platform = :platform and parent_external_id = :id", key)
    update_windows(db, is_erasing=True)
