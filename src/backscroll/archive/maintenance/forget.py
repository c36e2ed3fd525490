"""Erase sessions: forget some for good, or reduce a copy of the archive to some.

Forgotten sessions are excluded from later syncs. Only their ids remain.
"""

import sqlite3
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import PurePath
from typing import Any, NamedTuple

from msgspec import Struct

from backscroll.archive.annotations import delete_annotations
from backscroll.archive.connection import transaction
from backscroll.archive.derive.windows import mark_windows_changed, update_windows
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.delta import rebase_fragment_dependents, rebase_unit_dependents
from backscroll.archive.storage.raw_rows import compact_chunk, delete_rows
from backscroll.archive.storage.strings import FIXED_STRING_IDS, StringTable
from backscroll.archive.write.exclusions import MIN_DISTINCTIVE_ID_CHARS
from backscroll.model.store import single_session_kinds

_PATH_HASH_BYTES = 16
_STRING_COLUMNS = (
    ("message", ("kind", "tool", "model", "agent", "forked_from", "copied_from")),
    ("response", ("model", "speed")),
    ("reported_usage", ("model",)),
)
_ANNOTATIONS = ("tag", "star", "note", "user_title", "manual_link")
_OTHERS = "(platform, external_id) not in (select platform, external_id from kept_session)"
# About other sessions, or derived again on demand.
_EMPTIED_TABLES = (
    "undone_copy",
    "forgotten_session",
    "forgotten_unit",
    "git_commit",
    "commit_link",
    "hook_repository",
    "index_queue",
    "price",
)


class ForgetResult(Struct):
    """Content that was erased."""

    session_id: str
    platform: str
    subagents: int
    messages: int
    units: int  # units that were deleted completely
    originals: int  # bytes of original files and rows
    shared: tuple[str, ...]  # files with other sessions too; their originals are no longer stored
    is_erased: bool = False  # the bytes are overwritten in the archive's file


class _Unit(NamedTuple):
    id: int
    path: str


def forget_session(db: sqlite3.Connection, session: SessionKey) -> ForgetResult:
    """Delete a session and its subagents. The caller opens a transaction and derives sessions afterwards.

    Messages that other sessions contain too stay there.
    """
    key = {"platform": session.platform, "id": session.id}
    _select_fragments(db, key)
    subagents, messages = db.execute(
        "select count(distinct iif(is_subagent, external_id, null)), coalesce(sum(message_count), 0)"
        " from fragment where id in (select fragment_id from forgotten_fragment) and status = 'current'"
    ).fetchone()
    own, shared = _units(db, session)
    result = ForgetResult(
        session.id,
        session.platform,
        subagents,
        messages,
        len(own),
        sum(_original_bytes(db, unit.id) for unit in (*own, *shared)),
        tuple(unit.path for unit in shared if _original_bytes(db, unit.id)),
    )
    db.execute("insert or ignore into forgotten_session values (:platform, :id)", key)
    db.execute(
        "insert or ignore into forgotten_session select platform, external_id from fragment"
        " where id in (select fragment_id from forgotten_fragment)"
        " and is_subagent and parent_external_id is null"
    )
    _mark_related_underived(db, session, own)
    _delete_mentions(db, session)
    db.execute("delete from hook_event where platform = :platform and external_id = :id", key)
    db.execute("update hook_commit set session_external_id = null where session_external_id = :id", key)
    delete_annotations(db, session)
    _delete_derived_rows(db, key)
    for unit in (*own, *shared):  # before the fragments, which are their delta bases
        rebase_unit_dependents(db, unit.id)
        db.execute("delete from raw_segment where unit_id = ?", [unit.id])
    fragments = db.execute("select fragment_id from forgotten_fragment").fetchall()
    rebase_fragment_dependents(db, [fragment_id for (fragment_id,) in fragments])
    db.execute("delete from fragment where id in (select fragment_id from forgotten_fragment)")
    for unit in own:
        _forget_unit(db, unit.id)
    for unit in shared:
        delete_rows(db, unit.id)
        query = "update unit set checkpoint_offset = null, checkpoint_state = null where id = ?"
        db.execute(query, [unit.id])
    _delete_unused_strings(db)
    return result


def _select_fragments(db: sqlite3.Connection, key: dict[str, str]) -> None:
    """Fill a temporary table with the fragments of the session and its subagents."""
    db.execute("create temp table if not exists forgotten_fragment (fragment_id integer primary key)")
    db.execute("delete from forgotten_fragment")
    db.execute(
        "insert into forgotten_fragment select id from fragment where platform = :platform"
        " and (external_id = :id and"
        " (not is_subagent or coalesce(parent_external_id, inferred_parent_external_id) is null)"
        " or is_subagent and coalesce(parent_external_id, inferred_parent_external_id) = :id)",
        key,
    )


def _original_bytes(db: sqlite3.Connection, unit_id: int) -> int:
    """Return the size of the original file or rows of a unit."""
    row = db.execute(
        "select (select coalesce(sum(size), 0) from raw_segment where unit_id = :unit)"
        " + (select coalesce(sum(size), 0) from raw_row where unit_id = :unit)",
        {"unit": unit_id},
    ).fetchone()
    return int(row[0])


def _units(db: sqlite3.Connection, session: SessionKey) -> tuple[list[_Unit], list[_Unit]]:
    """Return the units that contain only this session, and those that contain others too.

    A file in the session's own folder belongs to it even if nothing in it could be parsed.
    """
    own: list[_Unit] = []
    shared: list[_Unit] = []
    rows: list[tuple[Any, ...]] = db.execute(
        "select u.id, u.path, u.kind, count(d.fragment_id), count(f.id)"
        " from unit u left join fragment f on f.unit_id = u.id"
        " left join forgotten_fragment d on d.fragment_id = f.id"
        " where u.platform = :platform and (u.key = :id or u.key = '' and instr(u.path, :id) or u.id in"
        " (select unit_id from fragment where id in (select fragment_id from forgotten_fragment)))"
        " group by u.id",
        {"platform": session.platform, "id": session.id},
    ).fetchall()
    for unit_id, path, kind, forgotten_count, fragment_count in rows:
        is_named = session.id in {PurePath(part).stem for part in PurePath(path).parts}
        if forgotten_count == fragment_count and (is_named or kind in single_session_kinds()):
            own.append(_Unit(unit_id, path))
        elif forgotten_count:
            shared.append(_Unit(unit_id, path))
    return own, shared


def _mark_related_underived(db: sqlite3.Connection, session: SessionKey, own: list[_Unit]) -> None:
    """Mark fragments that shared messages with the session or took their title from it."""
    for column, table in (("record_hash", "message"), ("response_hash", "response")):
        db.execute(
            "update fragment set is_derived = 0, compared_count = 0"  # noqa: S608 - constants
            " where id in (select o.fragment_id"
            f" from forgotten_fragment d cross join {table} m on m.fragment_id = d.fragment_id"
            f" cross join {table} o on o.{column} = m.{column})"
        )
    for unit in own:
        for table in ("message", "last_record"):
            db.execute(
                "update fragment set is_derived = 0 where id in (select m.fragment_id from title_hint h"  # noqa: S608
                f" cross join {table} m on m.record_hash = h.record_hash where h.unit_id = ?)",
                [unit.id],
            )
    id_ = {"id": StringTable(db)[session.id]}
    db.execute(
        "update fragment set is_derived = 0, compared_count = 0 where id in (select fragment_id from message"
        " where :id in (copied_from_string_id, forked_from_string_id))",
        id_,
    )
    db.execute(
        "update message set copied_from_string_id = nullif(copied_from_string_id, :id),"
        " forked_from_string_id = nullif(forked_from_string_id, :id)"
        " where :id in (copied_from_string_id, forked_from_string_id)",
        id_,
    )


def _delete_mentions(db: sqlite3.Connection, session: SessionKey) -> None:
    """Delete what other units contain about the session: titles, calls of its subagents, problems."""
    for table in ("message", "last_record"):
        db.execute(
            "delete from title_hint where record_hash in"  # noqa: S608 - constants
            f" (select m.record_hash from forgotten_fragment d join {table} m using (fragment_id))"
            f" and not exists (select 1 from {table} o where o.record_hash = title_hint.record_hash"
            " and o.fragment_id not in (select fragment_id from forgotten_fragment))"
        )
    db.execute(
        "delete from subagent_evidence where agent_id in (select f.external_id"
        " from forgotten_fragment d join fragment f on f.id = d.fragment_id where f.is_subagent)"
    )
    if len(session.id) >= MIN_DISTINCTIVE_ID_CHARS:
        db.execute("delete from problem where instr(path, :id) or instr(place, :id)", {"id": session.id})


def _delete_derived_rows(db: sqlite3.Connection, key: dict[str, str]) -> None:
    """Delete the rows of the session and its subagents, and its window if that has no other session."""
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


def _forget_unit(db: sqlite3.Connection, unit_id: int) -> None:
    """Delete a unit with everything read from it, and exclude it from later syncs."""
    path, key = db.execute("select path, key from unit where id = ?", [unit_id]).fetchone()
    db.execute("insert or ignore into forgotten_unit values (?)", [_path_hash(path, key)])
    fragments = db.execute("select id from fragment where unit_id = ?", [unit_id]).fetchall()
    rebase_fragment_dependents(db, [fragment_id for (fragment_id,) in fragments])
    rebase_unit_dependents(db, unit_id)
    delete_rows(db, unit_id)
    db.execute("delete from unit where id = ?", [unit_id])


def _path_hash(path: str, key: str) -> bytes:
    text = f"{path}\0{key}".encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=_PATH_HASH_BYTES).digest()


def forgotten_sessions(db: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    """Return platform and id of the forgotten sessions."""
    return frozenset(db.execute("select platform, external_id from forgotten_session").fetchall())


def is_forgotten_unit(db: sqlite3.Connection, path: str, key: str) -> bool:
    """Return whether a unit contained only forgotten sessions."""
    query = "select 1 from forgotten_unit where path_hash = ?"
    return db.execute(query, [_path_hash(path, key)]).fetchone() is not None


def delete_forgotten_originals(db: sqlite3.Connection, unit_id: int, kind: str) -> bool:
    """Delete the originals of a unit that contains a forgotten session, after it was read again.

    Return whether it contains no other session. The unit is deleted then and not read again.
    """
    rebase_unit_dependents(db, unit_id)
    db.execute("delete from raw_segment where unit_id = ?", [unit_id])
    delete_rows(db, unit_id)
    if (
        kind not in single_session_kinds()
        or db.execute("select 1 from fragment where unit_id = ?", [unit_id]).fetchone()
    ):
        return False
    _forget_unit(db, unit_id)
    return True


def keep_sessions(db: sqlite3.Connection, sessions: Iterable[SessionKey]) -> None:
    """Reduce a private copy of an archive to these sessions and their subagents.

    Derived values are kept as they are, so that the sessions are listed and counted as in the original.
    The file of a unit with other sessions too is no longer stored. Deleted bytes stay in free pages until the
    file is vacuumed.
    """
    with transaction(db):
        db.execute("pragma defer_foreign_keys = on")  # deleted bodies refer to each other
        _select_others(db, sessions)
        _rebase_kept_bodies(db)
        _delete_other_originals(db)
        db.execute("delete from fragment where id in (select id from other_fragment)")
        _delete_other_titles(db)
        db.execute(
            "delete from unit where id not in (select unit_id from fragment)"
            " and id not in (select unit_id from title_hint)"  # a transcript with the title of another one
        )
        _remove_deleted_values(db)
        _delete_other_rows(db)
        _delete_other_mentions(db)
        _delete_unused_strings(db)
        for table in _EMPTIED_TABLES:
            db.execute(f"delete from {table}")  # noqa: S608 - constants
        db.execute("update archive_identity set id = lower(hex(randomblob(16)))")


def _select_others(db: sqlite3.Connection, sessions: Iterable[SessionKey]) -> None:
    """Fill temporary tables: sessions to keep, fragments to delete, and units without any of those."""
    db.execute(
        "create temp table kept_session"
        " (platform text, external_id text, primary key (platform, external_id))"
    )
    db.executemany("insert or ignore into kept_session values (?, ?)", sessions)
    db.execute("create temp table other_fragment (id integer primary key)")
    db.execute(
        "insert into other_fragment select fragment_id from fragment_session"
        " where (platform, session_external_id) not in (select platform, external_id from kept_session)"
    )
    db.execute("create temp table kept_file (id integer primary key)")
    db.execute(
        "insert into kept_file select unit_id from fragment group by unit_id"
        " having max(id in (select id from other_fragment)) = 0"
    )


def _rebase_kept_bodies(db: sqlite3.Connection) -> None:
    """Store bodies that are kept without a delta base that is deleted."""
    fragments = db.execute(
        "select distinct delta_base_fragment_id from message_chunk"
        " where delta_base_fragment_id in (select id from other_fragment)"
        " and fragment_id not in (select id from other_fragment)"
    ).fetchall()
    rebase_fragment_dependents(db, [fragment_id for (fragment_id,) in fragments])
    units = db.execute(
        "select distinct delta_base_unit_id from raw_segment where unit_id in (select id from kept_file)"
        " and delta_base_unit_id is not null and delta_base_unit_id not in (select id from kept_file)"
    ).fetchall()
    for (unit_id,) in units:
        rebase_unit_dependents(db, unit_id)


def _delete_other_originals(db: sqlite3.Connection) -> None:
    """Delete the files and rows of units that are deleted, or contain sessions that are deleted."""
    for table in ("raw_segment", "raw_row", "problem"):
        db.execute(f"delete from {table} where unit_id not in (select id from kept_file)")  # noqa: S608
    db.execute(
        "update unit set checkpoint_offset = null, checkpoint_state = null"
        " where id not in (select id from kept_file)"
    )


def _remove_deleted_values(db: sqlite3.Connection) -> None:
    """Remove the values of deleted rows from the chunks that contain others too."""
    for (chunk_id,) in db.execute("select id from blob_chunk").fetchall():
        compact_chunk(db, chunk_id, always=True)


def _delete_other_rows(db: sqlite3.Connection) -> None:
    db.execute(f"delete from conversations where {_OTHERS}")  # noqa: S608 - constants
    db.execute(
        "delete from subagent where (platform, parent_external_id) not in"
        " (select platform, external_id from kept_session)"
    )
    db.execute(
        "delete from cursor_sessions where id not in"
        " (select session_id from conversations where session_id is not null)"
    )
    db.execute(
        "delete from hook_commit where session_external_id is null"
        " or session_external_id not in (select external_id from kept_session)"
    )
    db.execute("delete from hook_event where platform is null or external_id is null")
    for table in (*_ANNOTATIONS, "hook_event"):
        db.execute(f"delete from {table} where {_OTHERS}")  # noqa: S608 - constants


def _delete_other_titles(db: sqlite3.Connection) -> None:
    """Delete the titles of other sessions, which any transcript may contain."""
    db.execute(
        "delete from title_hint where record_hash not in (select record_hash from message)"
        " and record_hash not in (select record_hash from last_record)"
    )


def _delete_other_mentions(db: sqlite3.Connection) -> None:
    """Delete subagents of other sessions, and names of folders without units."""
    db.execute("delete from subagent_evidence where agent_id not in (select agent_id from subagent)")
    db.execute(
        "delete from folder_fingerprint where (source, root, path) not in"
        " (select source, root, folder from unit where key = '')"
    )
    db.execute("update folder_fingerprint set fingerprint = null")


def _delete_unused_strings(db: sqlite3.Connection) -> None:
    """Delete names of tools, agents and sessions that no row refers to."""
    used = " union ".join(
        f"select {column}_string_id from {table} where {column}_string_id is not null"  # noqa: S608 - constants
        for table, columns in _STRING_COLUMNS
        for column in columns
    )
    db.execute(
        f"delete from string where id > ? and id not in ({used})",  # noqa: S608 - constants
        [len(FIXED_STRING_IDS)],
    )
