"""Derive sessions from the fragments that were read."""

import sqlite3
from collections.abc import Iterable
from datetime import datetime

from backscroll.archive.connection import transaction
from backscroll.archive.derive import index_changes
from backscroll.archive.derive.affected import affected, settle
from backscroll.archive.derive.cursor_windows import settle_windows
from backscroll.archive.derive.dedup import mark_copies
from backscroll.archive.derive.session_rows import write_sessions
from backscroll.archive.derive.token_usage import find_makers
from backscroll.archive.maintenance.compact import give_back
from backscroll.archive.session_key import SessionKey
from backscroll.archive.storage.delta_bases import lean

__all__ = ["derive_sessions"]


def derive_sessions(db: sqlite3.Connection, changed: Iterable[int], now: datetime) -> set[SessionKey]:
    """Derive every session affected by changed fragments. Return their keys."""
    with transaction(db):
        index_changes.listen(db)
        sessions = affected(db, changed)
        mark_copies(db)
        find_makers(db)
        write_sessions(db, sessions, now)
        settle_windows(db)
        has_free_pages = lean(db)
        settle(db)
    if has_free_pages:
        give_back(db)
    return sessions
