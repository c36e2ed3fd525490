"""Whether the archive contains everything that the last sync found."""

import sqlite3
import time

from backscroll.archive.connection import transaction

__all__ = ["SyncState"]


class SyncState:
    """The state of the sync in the archive. A killed sync leaves it incomplete."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @property
    def is_complete(self) -> bool:
        """False before the first sync is complete, and while a long sync runs."""
        return bool(self._db.execute("select is_complete from sync_state").fetchone()[0])

    @property
    def session_count(self) -> int:
        """The number of sessions that can be listed."""
        return int(self._db.execute("select count(*) from conversations").fetchone()[0])

    @property
    def searchable_session_count(self) -> int:
        """The number of sessions that can be searched. Queued subagents are subtracted too."""
        (queued,) = self._db.execute("select count(*) from index_queue").fetchone()
        return max(self.session_count - int(queued), 0)

    def mark_incomplete(self) -> None:
        """Record that a long sync has started."""
        if self.is_complete:
            with transaction(self._db):
                self._db.execute("update sync_state set is_complete = 0")

    def mark_complete(self) -> None:
        """Record that everything was read and indexed. Writes nothing if that is recorded already."""
        if not self.is_complete:
            with transaction(self._db):
                now = time.time_ns() // 1_000_000
                self._db.execute("update sync_state set is_complete = 1, completed_at = ?", [now])
