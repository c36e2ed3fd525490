"""The queue of index jobs: sessions and subagents that the index does not contain completely."""

import sqlite3
from collections.abc import Iterable

from backscroll.archive.connection import transaction
from backscroll.model.value import Value

__all__ = ["IndexJob", "IndexQueue"]


class IndexJob(Value):
    """A session or subagent to index from a position on."""

    session_id: int  # conversations.number or subagent.id
    first_position: int
    revision: int  # changes when another process adds to the job


class IndexQueue:
    """Pending index jobs. `derive.index_changes` adds to them."""

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
