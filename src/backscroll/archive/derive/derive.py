"""Derive sessions from the fragments that were read.

The result depends on the archive alone and not on the order in which units were read. Derived facts are: the
store that provides a session's content, the session that first contained a repeated message, titles, the tool
call that started a subagent, token usage and where it counts.

The temporary tables `changed` (fragments), `shared` (records that other fragments contain too) and `repeated`
(responses that other fragments contain too) are input for all steps. `recopied` has the messages with a new
owner: see `session_rows.track_copy_changes`.
"""

import sqlite3
from collections.abc import Iterable
from datetime import datetime

from backscroll.archive.connection import transaction
from backscroll.archive.derive import session_rows
from backscroll.archive.derive.copies import mark_copies_with_new_ids, mark_duplicate_messages
from backscroll.archive.derive.session_rows import write_sessions
from backscroll.archive.derive.usage import assign_response_owner
from backscroll.archive.derive.windows import update_windows
from backscroll.archive.maintenance.compact import incremental_vacuum
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.delta import delta_compress_repeats

# Each query selects platform and id of sessions.
_AFFECTED_SESSIONS = (
    # of the changed fragments
    "select platform, session_external_id from fragment_session"
    " where fragment_id in (select fragment_id from changed)",
    # with a record of a changed fragment
    "select distinct s.platform, s.session_external_id"
    " from shared cross join message m on m.record_hash = shared.record_hash"
    " join fragment_session s on s.fragment_id = m.fragment_id",
    # with a response of a changed fragment
    "select distinct s.platform, s.session_external_id"
    " from repeated cross join response r on r.response_hash = repeated.response_hash"
    " join fragment_session s on s.fragment_id = r.fragment_id",
    # with a title in the unit of a changed fragment
    "select distinct s.platform, s.session_external_id"
    " from changed c cross join fragment own on own.id = c.fragment_id"
    " cross join title_hint h on h.unit_id = own.unit_id"
    " cross join message m on m.record_hash = h.record_hash"
    " join fragment_session s on s.fragment_id = m.fragment_id",
    "select distinct s.platform, s.session_external_id"
    " from changed c cross join fragment own on own.id = c.fragment_id"
    " cross join title_hint h on h.unit_id = own.unit_id"
    " cross join last_record l on l.record_hash = h.record_hash"
    " join fragment_session s on s.fragment_id = l.fragment_id",
    # with a subagent for which the unit of a changed fragment has evidence
    "select distinct p.platform, p.external_id"
    " from changed c cross join fragment own on own.id = c.fragment_id"
    " cross join subagent_evidence e on e.unit_id = own.unit_id"
    " join fragment a on a.external_id = e.agent_id and a.is_subagent"
    " join fragment p on p.external_id = a.parent_external_id and not p.is_subagent"
    "  and p.platform = a.platform",
)


def derive_sessions(db: sqlite3.Connection, changed: Iterable[int], now: datetime) -> set[SessionKey]:
    """Derive every session affected by changed fragments. Return their keys."""
    with transaction(db):
        session_rows.track_copy_changes(db)
        sessions = _affected_sessions(db, changed)
        mark_duplicate_messages(db)
        assign_response_owner(db)
        mark_copies_with_new_ids(db)
        write_sessions(db, sessions, now)
        update_windows(db)
        has_free_pages = delta_compress_repeats(db)
        _mark_derived(db)
    if has_free_pages and not db.in_transaction:  # it would commit the transaction of the caller
        incremental_vacuum(db)
    return sessions


def _affected_sessions(db: sqlite3.Connection, fragment_ids: Iterable[int]) -> set[SessionKey]:
    """Return the sessions that changed fragments affect.

    Of a fragment that grew, only the new messages are compared with other fragments.
    """
    found = _infer_parents(db)
    db.execute(
        "create temp table if not exists changed (fragment_id integer primary key, compared_count integer)"
    )
    db.execute("delete from changed")
    db.executemany(
        "insert or ignore into changed select id, compared_count from fragment where id = ?",
        [(id_,) for id_ in fragment_ids],
    )
    _find_shared(db)
    for query in _AFFECTED_SESSIONS:
        found |= {SessionKey(platform, id_) for platform, id_ in db.execute(query)}
    return found | _reset_forks(db)


def _infer_parents(db: sqlite3.Connection) -> set[SessionKey]:
    """Infer the parents of subagents if their own units name none.

    The parent is the session that names the subagent, or that contains the tool call which started it. Return
    the old and new sessions of subagents with a changed parent.
    """
    orphans = (
        "select platform, id, coalesce(inferred_parent_external_id, external_id) from fragment"
        " where is_subagent = 1 and parent_external_id is null"
    )
    before = {(platform, id_): session for platform, id_, session in db.execute(orphans)}
    db.execute(
        "update fragment set inferred_parent_external_id = coalesce("
        " (select p.external_id from subagent_link l join fragment p on p.id = l.fragment_id"
        "  where l.external_id = fragment.external_id"
        "  order by (p.platform, p.external_id) in undone_copy, p.external_id limit 1),"
        " (select s.external_id from subagent_evidence e join message m on m.call_hash = e.call_hash"
        "  join fragment s on s.id = m.fragment_id and not s.is_subagent"
        "  where e.agent_id = fragment.external_id"
        "  order by (s.platform, s.external_id) in undone_copy, e.strength, s.external_id limit 1))"
        " where is_subagent = 1 and parent_external_id is null"
    )
    changed: set[SessionKey] = set()
    for platform, id_, session in db.execute(orphans):
        if session != before[platform, id_]:
            changed |= {SessionKey(platform, session), SessionKey(platform, before[platform, id_])}
    return changed


def _find_shared(db: sqlite3.Connection) -> None:
    """Collect the records and responses of changed fragments that other fragments contain or contained."""
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


def _reset_forks(db: sqlite3.Connection) -> set[SessionKey]:
    """Return the forks of changed sessions that own messages copied from them.

    A fork owns such messages while the original session is missing or has no result of a tool call. The
    messages become copies again here, and `mark_duplicate_messages` decides again.
    """
    changed = db.execute(
        "select s.id from changed c cross join fragment own on own.id = c.fragment_id"
        " cross join string s on s.text = own.external_id where own.message_count and not own.is_subagent"
    ).fetchall()
    if not changed:
        return set()
    string_ids = f"({', '.join(str(id_) for (id_,) in changed)})"
    is_owned_copy = (
        f"forked_from_string_id in {string_ids} and forked_from_string_id is not null"
        " and copied_from_string_id is null"
    )
    forks = db.execute(
        "select distinct s.platform, s.session_external_id from message m indexed by message_fork"  # noqa: S608
        f" cross join fragment_session s on s.fragment_id = m.fragment_id where {is_owned_copy}"
    ).fetchall()
    if forks:
        db.execute(
            "update message indexed by message_fork"  # noqa: S608
            f" set copied_from_string_id = forked_from_string_id where {is_owned_copy}"
        )
    return {SessionKey(platform, id_) for platform, id_ in forks}


def _mark_derived(db: sqlite3.Connection) -> None:
    """Record that the changed fragments were compared with all others and their sessions derived."""
    db.execute(
        "update fragment set is_derived = 1, compared_count = message_count"
        " where id in (select fragment_id from changed)"
    )
