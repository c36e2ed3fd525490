"""Reduce a private copy of an archive to some of its sessions.

Derived values are kept as they are, so that the sessions are listed and counted as in the original archive.
"""

import sqlite3
from collections.abc import Iterable

from backscroll.archive.connection import transaction
from backscroll.archive.maintenance.forget import delete_unused_strings
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.blob_store import compact_chunk
from backscroll.archive.storage.delta import rebase_fragment_dependents, rebase_unit_dependents

__all__ = ["keep_sessions"]

_ANNOTATIONS = ("tag", "star", "note", "user_title")
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
)


def keep_sessions(db: sqlite3.Connection, sessions: Iterable[SessionKey]) -> None:
    """Delete everything that does not belong to these sessions or their subagents.

    The file of a unit with other sessions too is no longer stored. Deleted bytes stay in free pages until the
    file is vacuumed.
    """
    with transaction(db):
        db.execute("pragma defer_foreign_keys = on")  # deleted bodies refer to each other
        _select(db, sessions)
        _rebase_kept_bodies(db)
        _delete_originals(db)
        db.execute("delete from fragment where id in (select id from other_fragment)")
        db.execute("delete from unit where id not in (select unit_id from fragment)")
        _compact_chunks(db)
        _delete_session_rows(db)
        _delete_mentions(db)
        delete_unused_strings(db)
        for table in _EMPTIED_TABLES:
            db.execute(f"delete from {table}")  # noqa: S608 - constants
        db.execute("update archive_identity set id = lower(hex(randomblob(16)))")


def _select(db: sqlite3.Connection, sessions: Iterable[SessionKey]) -> None:
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


def _delete_originals(db: sqlite3.Connection) -> None:
    """Delete the files and rows of units that are deleted, or contain sessions that are deleted."""
    for table in ("raw_segment", "raw_row", "problem"):
        db.execute(f"delete from {table} where unit_id not in (select id from kept_file)")  # noqa: S608
    db.execute(
        "update unit set checkpoint_offset = null, checkpoint_state = null"
        " where id not in (select id from kept_file)"
    )


def _compact_chunks(db: sqlite3.Connection) -> None:
    """Remove the values of deleted rows from the chunks that contain others too."""
    for (chunk_id,) in db.execute("select id from blob_chunk").fetchall():
        compact_chunk(db, chunk_id, always=True)


def _delete_session_rows(db: sqlite3.Connection) -> None:
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


def _delete_mentions(db: sqlite3.Connection) -> None:
    """Delete titles and subagents of other sessions, and names of folders without units."""
    db.execute("delete from title_hint where record_hash not in (select record_hash from message)")
    db.execute("delete from subagent_evidence where agent_id not in (select agent_id from subagent)")
    db.execute(
        "delete from folder_fingerprint where (source, root, path) not in"
        " (select source, root, folder from unit where key = '')"
    )
    db.execute("update folder_fingerprint set fingerprint = null")
