"""Maintenance of the archive file."""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from backscroll.archive.connection import transaction
from backscroll.archive.maintenance import compact as compaction
from backscroll.archive.maintenance.compact import CompactResult
from backscroll.archive.maintenance.forget import ForgetResult, forget_session
from backscroll.archive.maintenance.growth import read_growth
from backscroll.archive.maintenance.relocation import NewRoot, relocate_units
from backscroll.archive.maintenance.selection import keep_sessions
from backscroll.archive.maintenance.source_counts import (
    count_current_problems,
    read_current_problems,
    read_source_counts,
)
from backscroll.archive.maintenance.status import Status, read_status
from backscroll.archive.maintenance.verify import verify
from backscroll.archive.pending_erasure import PendingErasure
from backscroll.archive.session_key import SessionKey
from backscroll.archive.undone_copies import mark_undone_copies, undone_copies_of
from backscroll.model import Problem, SessionSummary
from backscroll.model.problem import SourceCounts
from backscroll.model.safekeeping.path_maps import PathMaps
from backscroll.model.statistics import MonthGrowth

__all__ = ["Maintenance"]


class Maintenance:
    """Forget sessions, compact, verify, and report counts."""

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
        """Delete a session and its subagents and exclude them from later syncs.

        Call `vacuum` afterwards to overwrite the deleted bytes.
        """
        self._pending_erasure.start()
        self._db.execute("pragma secure_delete = on")
        try:
            with transaction(self._db):
                session = SessionKey(summary.platform, summary.id)
                copies = undone_copies_of(self._db, session)  # no list shows them, so they are erased, too
                result = forget_session(self._db, session)
                for copy in copies:
                    forget_session(self._db, copy)
            self._derive()
        finally:
            self._db.execute("pragma secure_delete = off")
        return result

    def is_empty(self) -> bool:
        """Return whether the archive contains no session and remembers no forgotten one."""
        tables = ("fragment", "forgotten_session")
        return not any(self._db.execute(f"select 1 from {table} limit 1").fetchone() for table in tables)  # noqa: S608

    def hide_undone_copies(self, sessions: Iterable[SessionKey]) -> None:
        """Stop listing copies of sessions that `undo` removed from the tool."""
        with transaction(self._db):
            mark_undone_copies(self._db, sessions)
        self._derive()

    def copy(self, target: Path) -> None:
        """Write a consistent copy of the archive to a new file, while other processes may write."""
        target.touch(mode=0o600)
        with closing(sqlite3.connect(target, isolation_level=None)) as copy:
            copy.execute("pragma synchronous = off")
            self._db.backup(copy)

    def copy_sessions(self, target: Path, sessions: Iterable[SessionKey]) -> None:
        """Write a copy of the archive with some sessions only, also in its unused pages, to a new file."""
        complete = target.with_name(f"{target.name}.complete")
        try:
            self.copy(complete)
            with closing(sqlite3.connect(complete, isolation_level=None)) as copy:
                copy.execute("pragma journal_mode = off")
                copy.execute("pragma synchronous = off")
                copy.execute("pragma foreign_keys = on")
                keep_sessions(copy, sessions)
                target.touch(mode=0o600)
                copy.execute("vacuum into ?", [str(target)])
        finally:
            complete.unlink(missing_ok=True)

    def relocate(self, new_root: NewRoot, maps: PathMaps) -> int:
        """Change paths in a private copy for another machine; see `relocate_units`."""
        return relocate_units(self._db, new_root, maps)

    def compact(self) -> CompactResult:
        """Reduce the file to its minimum size."""
        return compaction.compact(self._db, self._path)

    def vacuum(self) -> bool:
        """Remove deleted data from the file. Return False if it is in use or the disk is full."""
        try:
            is_done = compaction.vacuum(self._db)
        except sqlite3.OperationalError:
            return False
        if is_done and not self._pending_erasure.is_index_pending:
            self._pending_erasure.finish()
        return is_done

    def status(self) -> Status:
        """Return counts and sizes."""
        return read_status(self._db, self._path)

    def growth(self) -> list[MonthGrowth]:
        """Return sessions, messages and bytes of originals by month, oldest first."""
        return read_growth(self._db)

    def source_counts(self) -> dict[tuple[str, str], SourceCounts]:
        """Return the record counts of each root, by source and path, as of the last sync."""
        return read_source_counts(self._db)

    def current_problems(self, limit: int) -> tuple[int, list[Problem]]:
        """Return the number of problems in units that the tools still have, and the first ones."""
        return count_current_problems(self._db), read_current_problems(self._db, limit)

    def verify(self) -> list[str]:
        """Return one sentence per inconsistency; none if the archive is intact."""
        return verify(self._db)
