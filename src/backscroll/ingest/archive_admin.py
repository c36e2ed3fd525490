"""Status, verification, erasure, rebuild and extraction."""

import shutil
from collections.abc import Callable
from pathlib import Path

from backscroll.archive.maintenance.compact import CompactResult
from backscroll.archive.maintenance.forget import ForgetResult
from backscroll.archive.maintenance.legacy import LegacyImport, UpgradeResult, import_legacy, upgrade_legacy
from backscroll.archive.maintenance.maintenance import Status
from backscroll.errors import DataNotFoundError, UsageError
from backscroll.ingest.originals import Extracted, Rebuilt, extract, rebuild
from backscroll.ingest.repair import repair
from backscroll.model.problem import Repaired
from backscroll.model.statistics import MonthGrowth
from backscroll.stores.indexer import forget
from backscroll.stores.lookup import find_session, find_session_to_change
from backscroll.stores.stores import Stores


class ArchiveAdmin:
    """Status, verification, erasure, rebuild and extraction."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def status(self) -> Status:
        """Return the counts and sizes of the archive."""
        return self._stores.archive.maintenance.status()

    def growth(self) -> list[MonthGrowth]:
        """Return sessions, messages and bytes of originals by the month of their start, oldest first."""
        return self._stores.archive.maintenance.growth()

    def verify(self) -> list[str]:
        """Return one sentence for every inconsistency in the archive."""
        return self._stores.archive.maintenance.verify()

    def compact(self) -> CompactResult:
        """Reduce the archive file to its minimum size."""
        return self._stores.writable_archive.maintenance.compact()

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> Rebuilt:
        """Recreate sessions and index from the archived originals."""
        return rebuild(self._stores.writable_archive, self._stores.index.index, progress)

    def repair(self, progress: Callable[[int, int], None] | None = None) -> Repaired:
        """Replace a damaged archive by what can be read of it, and read the rest again.

        The damaged file is kept. Raises `ArchiveError`.
        """
        return repair(self._stores, progress)

    def forget(self, ref: str) -> ForgetResult:
        """Erase a session and its subagents from archive and index, and exclude them from later syncs.

        Files and rows that the change log saved are erased, too: such changes can no longer be undone. The
        tool's own files and backups are not changed. Messages that another session repeats stay in that
        session.
        """
        summary = find_session_to_change(self._stores.archive, ref)
        if summary.parent_ref is not None:
            raise UsageError(
                f"{summary.ref} is a subagent. Forget the session that started it: {summary.parent_ref}"
            )
        shutil.rmtree(self._stores.backup_cache, ignore_errors=True)
        forgotten = forget(self._stores.writable_archive, self._stores.index.index, summary)
        self._stores.change_log.forget(summary.ref)
        return forgotten

    def extract(self, ref: str, folder: Path) -> Extracted:
        """Write the originals of a session and its subagents into a folder.

        Files are written byte for byte. Database rows are written into a database with the tool's layout.
        Raises `DestinationError` if a file of that name exists.
        """
        summary = find_session(self._stores.archive, ref)
        extracted = extract(self._stores.archive, summary.id, folder)
        if not extracted.files:
            raise DataNotFoundError(
                f"The archive has no originals of {summary.ref}.",
                folder,
                hint="Run 'backscroll show --json' to see its content.",
            )
        return extracted

    def upgrade_database(self, path: Path) -> UpgradeResult:
        """Upgrade another program's database from the old unified schema, after a backup.

        Raises `DatabaseNotFoundError`, `DatabaseUnreadableError`, `DatabaseLockedError` or
        `DestinationError`; the database is unchanged then.
        """
        return upgrade_legacy(path)

    def import_database(self, path: Path) -> LegacyImport:
        """Import the conversations of an upgraded database that the archive does not have.

        Raises `DatabaseUnreadableError`; the archive is unchanged then.
        """
        return import_legacy(self._stores.archive_path, path, self._stores.archive.units.exclusions)
