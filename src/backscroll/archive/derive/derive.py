"""Derive sessions from the fragments that were read.

The result depends on the archive alone and not on the order in which units were read. Derived facts are: the
store that provides a session's content, the session that first contained a repeated message, titles, the tool
call that started a subagent, token usage and where it counts.
"""

import sqlite3
from collections.abc import Iterable
from datetime import datetime

from backscroll.archive.connection import transaction
from backscroll.archive.derive import index_changes
from backscroll.archive.derive.affected import affected_sessions, mark_derived
from backscroll.archive.derive.cursor_windows import update_windows
from backscroll.archive.derive.dedup import mark_duplicate_messages
from backscroll.archive.derive.new_id_copies import mark_copies_with_new_ids
from backscroll.archive.derive.session_rows import write_sessions
from backscroll.archive.derive.token_usage import assign_response_owner
from backscroll.archive.maintenance.compact import incremental_vacuum
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.delta_bases import delta_compress_repeats

__all__ = ["derive_sessions"]


def derive_sessions(db: sqlite3.Connection, changed: Iterable[int], now: datetime) -> set[SessionKey]:
    """Derive every session affected by changed fragments. Return their keys."""
    with transaction(db):
        index_changes.track_copy_changes(db)
        sessions = affected_sessions(db, changed)
        mark_duplicate_messages(db)
        assign_response_owner(db)
        mark_copies_with_new_ids(db)
        write_sessions(db, sessions, now)
        update_windows(db)
        has_free_pages = delta_compress_repeats(db)
        mark_derived(db)
    if has_free_pages:
        incremental_vacuum(db)
    return sessions
