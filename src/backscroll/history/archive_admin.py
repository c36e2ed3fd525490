"""The archive itself: what it holds, whether it is whole, and what is to go."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.errors import (
    DataNotFoundError,
    UsageError,
)
from backscroll.history.sessions import Sessions

if TYPE_CHECKING:
    from backscroll.archive.maintenance.compact import Compacted
    from backscroll.archive.maintenance.forget import Forgotten
    from backscroll.archive.maintenance.legacy_import import Adopted
    from backscroll.archive.maintenance.legacy_upgrade import Upgraded
    from backscroll.archive.maintenance.status import Status
    from backscroll.ingest.audit import Progress
    from backscroll.ingest.extract import Extracted
    from backscroll.ingest.maintenance import Rebuilt
    from backscroll.model.events import EventLog

__all__ = ["Keeping"]


class Keeping(Sessions):
    """The archive itself: what it holds, whether it is whole, and what is to go."""

    def archive_status(self) -> Status:
        """What the archive holds, in numbers."""
        return self._archive.maintenance.status()

    def ledger(self, since: datetime | None = None) -> EventLog:
        """What became of sessions in the tools' own stores since a moment, or ever. All of them are kept."""
        return self._archive.events.log(since)

    def verify_archive(self) -> list[str]:
        """What in the archive does not agree with itself, a sentence each."""
        return self._archive.maintenance.verify()

    def upgrade_database(self, path: Path) -> Upgraded:
        """Bring another program's database from the old unified schema to today's, after a backup.

        Raises `DatabaseNotFoundError`, `DatabaseUnreadableError`, `DatabaseLockedError` or
        `DestinationError`; then the database holds what it held before.
        """
        from backscroll.archive.maintenance.legacy_upgrade import upgrade

        return upgrade(path)

    def adopt_database(self, path: Path) -> Adopted:
        """Take the conversations of an upgraded database into the archive, where it has none of that id.

        Raises `DatabaseUnreadableError`; then the archive is as it was.
        """
        from backscroll.archive.maintenance.legacy_import import adopt

        return adopt(self.archive_path, path, self._archive.units.exclusions)

    def forget_session(self, ref: str) -> Forgotten:
        """Erase a session and its subagents from archive and index for good, and keep them from coming back.

        The tool's own files are not touched. Messages that another session repeats stay in that one.
        """
        from backscroll.ingest.maintenance import forget

        summary = self.find(ref)
        if summary.parent_ref is not None:
            raise UsageError(
                f"{summary.ref} is a subagent and is forgotten with the session that started it:"
                f" {summary.parent_ref}"
            )
        return forget(self._archive, self._index, summary)

    def rebuild_archive(self, progress: Progress | None = None) -> Rebuilt:
        """Make sessions and index anew from the original files and rows that are kept."""
        from backscroll.ingest.maintenance import rebuild

        return rebuild(self._archive, self._index, progress)

    def compact_archive(self) -> Compacted:
        """Make the archive's file as small as it can be."""
        return self._archive.maintenance.compact()

    def extract(self, ref: str, folder: Path) -> Extracted:
        """Write a session's originals into a folder, and its subagents' too.

        Files come byte for byte; of databases the session's rows, laid out as the tool lays them out.
        Raises `DestinationError` when a file of that name is there already.
        """
        from backscroll.ingest.extract import extract

        summary = self.find(ref)
        done = extract(self._archive, summary.id, folder)
        if not done.files:
            raise DataNotFoundError(f"of {summary.ref} no original is kept; show it with --json", folder)
        return done
