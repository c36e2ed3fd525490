"""Create, check and list backups."""

from collections.abc import Sequence
from pathlib import Path

from backscroll.backup.browse import extract_archive
from backscroll.backup.create import create_backup, plan_backup
from backscroll.backup.folder import (
    delete_backup,
    list_backups,
    new_backup_path,
    prunable_backups,
    read_manifest,
)
from backscroll.backup.restore import plan_restore, restore_backup
from backscroll.backup.restore_plan import RestoreOptions
from backscroll.backup.verify import verify_backup
from backscroll.changes import ChangeLog
from backscroll.errors import UsageError
from backscroll.history.stores import Stores
from backscroll.model import Filter
from backscroll.model.backup import (
    BackupManifest,
    BackupPlan,
    BackupResult,
    BackupStats,
    BackupSummary,
    BackupValidation,
    ProgressCallback,
    RestoreResult,
)
from backscroll.sources import named

__all__ = ["Backups"]

list_ = list  # `Backups.list` hides the name


class Backups:
    """Create, check and list backups."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    @property
    def folder(self) -> Path:
        """The folder of backups: the setting ``backup_dir``, else ``backups`` beside the archive."""
        return self._stores.settings.backup_dir or self._stores.archive_path.with_name("backups")

    def create(
        self,
        path: Path | None = None,
        *,
        base: Path | None = None,
        force: bool = False,
        with_secrets: bool = False,
        progress: ProgressCallback | None = None,
    ) -> BackupResult:
        """Back up all roots and the archive into a new file, by default in the folder of backups."""
        return create_backup(
            self._target(path, base),
            self._stores.roots(),
            self._stores.archive,
            self._stats(),
            base=base.absolute() if base is not None else None,
            force=force,
            with_secrets=with_secrets,
            progress=progress,
        )

    def plan(self, path: Path | None = None, *, base: Path | None = None, force: bool = False) -> BackupPlan:
        """Return what `create` would write. Raises `BackupError` for an unsuitable path or base."""
        return plan_backup(
            self._target(path, base),
            self._stores.roots(),
            self._stores.archive,
            self._stats(),
            base=base.absolute() if base is not None else None,
            force=force,
        )

    def _target(self, path: Path | None, base: Path | None) -> Path:
        folder = base.absolute().parent if base is not None else None
        return (path or self.new_path(folder)).absolute()

    def _stats(self) -> BackupStats:
        sessions = self._stores.archive.sessions.page(Filter(with_unlisted=True), limit=-1, offset=0)
        return BackupStats(len(sessions), sum(session.message_count for session in sessions))

    def new_path(self, folder: Path | None = None) -> Path:
        """Return a name for a new backup in a folder."""
        return new_backup_path((folder or self.folder).absolute())

    def restore(
        self,
        path: Path,
        *,
        source: str | None = None,
        sessions: Sequence[str] = (),
        maps: Sequence[tuple[str, str]] = (),
        force: bool = False,
        progress: ProgressCallback | None = None,
    ) -> RestoreResult:
        """Restore a backup, or one source or some sessions of it."""
        options = self._restore_options(source, sessions, maps, force=force)
        self._stores.close()  # the archive may be restored too
        log = ChangeLog(options.archive_folder / "changes")
        return restore_backup(path.absolute(), options, log, progress=progress)

    def plan_restore(
        self,
        path: Path,
        *,
        source: str | None = None,
        sessions: Sequence[str] = (),
        maps: Sequence[tuple[str, str]] = (),
        force: bool = False,
        with_running: bool = False,
        progress: ProgressCallback | None = None,
    ) -> RestoreResult:
        """Return what `restore` would do. Nothing is changed.

        ``with_running`` returns a running process in ``blocked_by`` instead of raising `ToolRunningError`.
        """
        options = self._restore_options(source, sessions, maps, force=force)
        return plan_restore(path.absolute(), options, progress, with_running=with_running)

    def _restore_options(
        self,
        source: str | None,
        sessions: Sequence[str],
        maps: Sequence[tuple[str, str]],
        *,
        force: bool,
    ) -> RestoreOptions:
        if source is not None:
            named(source)  # raises UsageError
        return RestoreOptions(
            archive_folder=self._stores.archive_path.parent.absolute(),
            source=source,
            sessions=tuple(sessions),
            maps=tuple(maps),
            force=force,
        )

    def validate(self, path: Path, progress: ProgressCallback | None = None) -> BackupValidation:
        """Read a whole backup and compare it with its manifest."""
        return verify_backup(path.absolute(), progress)

    def manifest(self, path: Path) -> BackupManifest:
        """Return the table of contents of a backup. Raises `InvalidBackupError`."""
        return read_manifest(path.absolute())

    def open(self, path: Path) -> Stores:
        """Extract the archive of a backup and return it with an index of its own."""
        folder = extract_archive(path.absolute(), self._stores.backup_cache)
        return Stores((), folder, self._stores.machine, is_detached=True)

    def prunable(self, keep: int, folder: Path | None = None) -> list_[BackupSummary]:
        """Return the backups in a folder that are neither among the newest nor needed by one of those."""
        if keep < 1:
            raise UsageError("At least one backup must be kept.")
        return prunable_backups(self.list(folder), keep)

    def delete(self, backup: BackupSummary) -> None:
        """Delete a backup. Raises `BackupError`."""
        delete_backup(backup)

    def list(self, folder: Path | None = None) -> list[BackupSummary]:
        """Return the backups in a folder, newest first."""
        return list_backups((folder or self.folder).absolute())
