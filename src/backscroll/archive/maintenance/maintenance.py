"""Maintenance of the archive file."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from backscroll.archive.connection import transaction
from backscroll.archive.maintenance import forget as forgetting
from backscroll.archive.maintenance.compact import CompactResult, compact, vacuum
from backscroll.archive.maintenance.forget import ForgetResult
from backscroll.archive.maintenance.status import Status, status, verify
from backscroll.archive.pending_erasure import PendingErasure
from backscroll.archive.session_key import SessionKey
from backscroll.model import SessionSummary

__all__ = ["Maintenance"]


class Maintenance:
    """Forget, compact, verify and report."""

    def __init__(
        self,
        db: sqlite3.Connection,
        path: Path,
        pending_erasure: PendingErasure,
        derive: Callable[[], object],
    ) -> None:
        self._db = db
        self._path = path
        self._pending_erasure = pending_erasure
        self._derive = derive

    def forget(self, summary: SessionSummary) -> ForgetResult:
        """Erase a session and its subagents, and never take them in again; `vacuum` erases the bytes."""
        self._pending_erasure.start()
        self._db.execute("pragma secure_delete = on")
        try:
            with transaction(self._db):
                forgotten = forgetting.forget(self._db, SessionKey(summary.platform, summary.id))
            self._derive()
        finally:
            self._db.execute("pragma secure_delete = off")
        return forgotten

    def compact(self) -> CompactResult:
        """Make the file as small as it can be."""
        return compact(self._db, self._path)

    def vacuum(self) -> bool:
        """Leave nothing in the file of what was deleted. False when others use it, or the disk is full."""
        try:
            is_gone = vacuum(self._db)
        except sqlite3.OperationalError:
            return False
        if is_gone and not self._pending_erasure.is_index_pending:
            self._pending_erasure.finish()
        return is_gone

    def status(self) -> Status:
        """What there is, in numbers."""
        return status(self._db, self._path)

    def verify(self) -> list[str]:
        """What does not agree with itself, a sentence each; nothing when the archive is whole."""
        return verify(self._db)
