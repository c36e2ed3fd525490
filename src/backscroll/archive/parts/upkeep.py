"""The file itself: what it holds, whether it is whole, what is to go."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from backscroll.archive.connection import transaction
from backscroll.archive.maintenance.erasure import (
    owe_erasure,
    owes_erasure,
    owes_index,
    settle_erasure,
    settle_index,
)
from backscroll.archive.parts.intake import Intake

if TYPE_CHECKING:
    from backscroll.archive.maintenance.compact import Compacted
    from backscroll.archive.maintenance.forget import Forgotten
    from backscroll.archive.maintenance.status import Status
    from backscroll.model import SessionSummary

__all__ = ["Upkeep"]


class Upkeep(Intake):
    """The file itself: what it holds, whether it is whole, what is to go."""

    def forget(self, summary: SessionSummary) -> Forgotten:
        """Erase a session and its subagents, and never take them in again; `vacuum` erases the bytes."""
        from backscroll.archive.derive.affected import Session
        from backscroll.archive.maintenance import forget as forgetting

        owe_erasure(self.path)
        self._db.execute("pragma secure_delete = on")
        try:
            with transaction(self._db):
                forgotten = forgetting.forget(self._db, Session(summary.platform, summary.id))
            self.derive()
        finally:
            self._db.execute("pragma secure_delete = off")
        return forgotten

    @property
    def owes_erasure(self) -> bool:
        """Whether something of what was forgotten may still be left, in the index or in free space."""
        return owes_erasure(self.path)

    @property
    def owes_index(self) -> bool:
        """Whether the index may still hold words of what was forgotten."""
        return owes_index(self.path)

    def settle_index(self) -> None:
        """The index was made anew after something was forgotten."""
        settle_index(self.path)

    def compact(self) -> Compacted:
        """Make the file as small as it can be."""
        from backscroll.archive.maintenance.compact import compact

        return compact(self._db, self.path)

    def vacuum(self) -> bool:
        """Leave nothing in the file of what was deleted. False when others use it, or the disk is full."""
        from backscroll.archive.maintenance.compact import vacuum

        try:
            is_gone = vacuum(self._db)
        except sqlite3.OperationalError:
            return False
        if is_gone and not self.owes_index:
            settle_erasure(self.path)
        return is_gone

    def status(self) -> Status:
        """What there is, in numbers."""
        from backscroll.archive.maintenance.status import status

        return status(self._db, self.path)

    def verify(self) -> list[str]:
        """What does not agree with itself, a sentence each; nothing when the archive is whole."""
        from backscroll.archive.maintenance.status import verify

        return verify(self._db)
