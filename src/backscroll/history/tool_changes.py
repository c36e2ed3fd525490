"""The contract's methods for backups and for changes of the tools' stores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from backscroll.history.parts.backups import Backups
    from backscroll.history.parts.transfers import Transfers
    from backscroll.model import Filter
    from backscroll.model.safekeeping.backup import (
        BackupResult,
        BackupValidation,
        ProgressCallback,
        RestoreResult,
    )
    from backscroll.model.safekeeping.changes import Change
    from backscroll.model.safekeeping.transfer import MigrateResult, Mode, RestoreSessionResult

__all__ = ["ToolChanges"]


class ToolChanges:
    """Methods of `History` for backups and for changes of the tools' stores.

    Every change is recorded and can be undone.
    """

    backups: Backups
    transfers: Transfers

    def create_backup(
        self,
        path: str | PathLike[str] | None = None,
        *,
        filter: Filter | None = None,
        sessions: Sequence[str] = (),
        base: str | PathLike[str] | None = None,
        force: bool = False,
        with_secrets: bool = False,
        progress: ProgressCallback | None = None,
    ) -> BackupResult:
        """Back up the tools' histories and the archive into one file, by default in the folder of backups.

        With a ``filter`` or refs of ``sessions``, the backup contains only the sessions that match both. With
        a ``base``, only files that have changed since that backup are written. Credentials are removed
        from the copies of databases, unless ``with_secrets``. Call `sync` first to bring the archive in the
        backup up to date. Raises `BackupError`.
        """
        return self.backups.create(
            path,
            filter=filter,
            sessions=sessions,
            base=base,
            force=force,
            with_secrets=with_secrets,
            progress=progress,
        )

    def validate_backup(
        self, path: str | PathLike[str], progress: ProgressCallback | None = None
    ) -> BackupValidation:
        """Read a whole backup and compare every file with its manifest."""
        return self.backups.validate(path, progress)

    def restore_backup(
        self,
        path: str | PathLike[str],
        *,
        source: str | None = None,
        sessions: Sequence[str] = (),
        path_map: Mapping[str, str] | None = None,
        force: bool = False,
        is_dry_run: bool = False,
        progress: ProgressCallback | None = None,
    ) -> RestoreResult:
        """Restore the valid files of a backup to where they were: all, those of a source, or of sessions.

        Files and sessions that exist and differ are kept unless ``force``. ``path_map`` has new folders by
        old ones: files below them go to the new place, and workspaces below them are renamed. The change log
        keeps what was replaced. Raises `BackupError`, `ToolRunningError` or `ChangeConflictError`; then
        nothing is changed.
        """
        restore = self.backups.restore if not is_dry_run else self.backups.plan_restore
        return restore(
            path, source=source, sessions=sessions, path_map=path_map, force=force, progress=progress
        )

    def restore_session(self, ref: str) -> RestoreSessionResult:
        """Write a session that its tool has deleted back to the tool's store, so that the tool can resume it.

        Existing files are not replaced. Raises `ToolRunningError`, `ChangeConflictError`,
        `DataNotFoundError`, `TransferError` or `UnknownStoreVersionError`; then nothing is changed.
        """
        return self.transfers.restore(self.transfers.plan_restore(ref))

    def migrate_session(
        self,
        ref: str | Sequence[str],
        target: str | PathLike[str],
        *,
        mode: Mode = "copy",
        keep_cwd: bool = False,
    ) -> MigrateResult:
        """Move or copy sessions to another folder, so that the tool finds them there.

        A copy has a new id. ``keep_cwd`` leaves the folder that is recorded with each message. A session that
        fails is in ``errors`` and left as it was. Raises `SessionNotFoundError` or `DestinationError`.
        """
        refs = [ref] if isinstance(ref, str) else ref
        return self.transfers.migrate(
            self.transfers.plan_sessions(refs, Path(target), mode=mode, keep_cwd=keep_cwd)
        )

    def migrate_workspace(
        self,
        workspace: str | PathLike[str],
        target: str | PathLike[str],
        *,
        mode: Mode = "copy",
        keep_cwd: bool = False,
    ) -> MigrateResult:
        """Move or copy all sessions of a folder. Raises `WorkspaceNotFoundError` or `DestinationError`."""
        return self.transfers.migrate(
            self.transfers.plan_workspace(Path(workspace), Path(target), mode=mode, keep_cwd=keep_cwd)
        )

    def list_changes(self) -> list[Change]:
        """Return all changes of the tools' stores, newest first."""
        return self.transfers.changes()

    def undo_change(self, change_id: str | None = None) -> list[Change]:
        """Undo a change; without an id, everything that the last command changed.

        Raises `ChangeNotFoundError`, or `ChangeConflictError` if something has changed since.
        """
        return self.transfers.undo(change_id)
