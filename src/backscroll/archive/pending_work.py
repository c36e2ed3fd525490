"""Work that the next sync completes: index jobs, an incomplete sync, an unfinished erasure."""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from backscroll.archive.connection import now_ms, transaction


class IndexJob(NamedTuple):
    """A session or subagent to index from a position on."""

    session_id: int  # conversations.number or subagent.id
    first_position: int
    revision: int  # changes when another process adds to the job


class IndexQueue:
    """Sessions and subagents that the index does not contain completely. `derive.index_changes` adds them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @property
    def is_pending(self) -> bool:
        return self._db.execute("select 1 from index_queue limit 1").fetchone() is not None

    def next_jobs(self, limit: int) -> list[IndexJob]:
        """Return up to `limit` jobs."""
        rows = self._db.execute(
            "select session_number, first_position, revision from index_queue limit ?", [limit]
        )
        return [IndexJob(*row) for row in rows]

    def mark_done(self, jobs: Iterable[IndexJob]) -> None:
        """Delete finished jobs, except those that another process has added to in the meantime."""
        with transaction(self._db):
            self._db.executemany(
                "delete from index_queue where session_number = ? and revision = ?",
                [(job.session_id, job.revision) for job in jobs],
            )

    def add_all(self) -> None:
        """Queue every session and subagent from the start."""
        with transaction(self._db):
            self._db.execute("update index_queue set first_position = 0, revision = revision + 1")
            self._db.execute(
                "insert or ignore into index_queue (session_number) select number from conversations"
                " union select id from subagent"
            )


class SyncState:
    """Whether the archive contains everything that the last sync found. False after a killed sync."""

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
                self._db.execute("update sync_state set is_complete = 1, completed_at = ?", [now_ms()])


class PendingErasure:
    """Marker file for an unfinished erasure, in the folder of the archive.

    `forget` deletes rows in one transaction. Afterwards the index and the free pages still contain text. The
    marker exists from before the transaction until both are clean. So the next sync can finish after a crash.
    """

    def __init__(self, archive: Path) -> None:
        self._marker = archive.with_name(f"{archive.name}-erase")

    def start(self) -> None:
        """Record that the index and the free pages must be cleaned."""
        self._marker.write_text("index\n", encoding="ascii")

    @property
    def is_pending(self) -> bool:
        return self._marker.exists()

    @property
    def is_index_pending(self) -> bool:
        """Whether the index may still contain forgotten text."""
        return self.is_pending and "index" in self._marker.read_text(encoding="ascii", errors="replace")

    def mark_index_done(self) -> None:
        """Record that the index is clean. Free pages may still contain text."""
        if self.is_pending:
            self._marker.write_text("free space\n", encoding="ascii")

    def finish(self) -> None:
        """Delete the marker."""
        self._marker.unlink(missing_ok=True)
