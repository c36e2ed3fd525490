"""The contract's methods that change the tools' stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from backscroll.history.parts.backups import Backups
    from backscroll.history.parts.transfers import Transfers
    from backscroll.model.backup import ProgressCallback, RestoreResult
    from backscroll.model.changes import Change
    from backscroll.model.transfer import MigrateResult, Mode, RestoreSessionResult

__all__ = ["ToolChanges"]


class ToolChanges:
    """Methods of `History` that change the tools' stores. Every change is recorded and can be undone."""

    backups: Backups
    transfers: Transfers

    def restore_backup(
        self,
        path: Path,
        *,
        source: str | None = None,
        sessions: Sequence[str] = (),
        maps: Sequence[tuple[str, str]] = (),
        force: bool = False,
        is_dry_run: bool = False,
        progress: ProgressCallback | None = None,
    ) -> RestoreResult:
        """Restore the valid files of a backup to where they were: all, those of a source, or of sessions.

        Files that exist and differ are kept unless ``force``. ``maps`` are pairs of an old and a new folder.
        The change log keeps what was replaced. Raises `BackupError`, `ToolRunningError` or
        `ChangeConflictError`; then nothing is changed.
        """
        restore = self.backups.restore if not is_dry_run else self.backups.plan_restore
        return restore(path, source=source, sessions=sessions, maps=maps, force=force, progress=progress)

    def restore_session(self, ref: str) -> RestoreSessionResult:
        """Write a session that its tool has lost back to the tool's store, so that the tool can resume it.

        Existing files are not replaced. Raises `ToolRunningError`, `ChangeConflictError`,
        `DataNotFoundError`, `TransferError` or `UnknownStoreVersionError`; then nothing is changed.
        """
        return self.transfers.restore(self.transfers.plan_restore(ref))

    def migrate_session(
        self, ref: str | Sequence[str], target: Path, *, mode: Mode = "copy", keep_cwd: bool = False
    ) -> MigrateResult:
        """Move or copy sessions to another folder, so that the tool finds them there.

        A copy has a new id. ``keep_cwd`` leaves the folder that is recorded with each message. A session that
        fails is in ``errors`` and left as it was. Raises `SessionNotFoundError` or `DestinationError`.
        """
        refs = [ref] if isinstance(ref, str) else ref
        return self.transfers.migrate(
            self.transfers.plan_sessions(refs, target, mode=mode, keep_cwd=keep_cwd)
        )

    def migrate_workspace(
        self, workspace: str | Path, target: Path, *, mode: Mode = "copy", keep_cwd: bool = False
    ) -> MigrateResult:
        """Move or copy all sessions of a folder. Raises `WorkspaceNotFoundError` or `DestinationError`."""
        return self.transfers.migrate(
            self.transfers.plan_workspace(workspace, target, mode=mode, keep_cwd=keep_cwd)
        )

    def list_changes(self) -> list[Change]:
        """Return all changes of the tools' stores, newest first."""
        return self.transfers.changes()

    def undo_change(self, change_id: str | None = None) -> list[Change]:
        """Undo a change; without an id, everything that the last command changed.

        Raises `ChangeNotFoundError`, or `ChangeConflictError` if something has changed since.
        """
        return self.transfers.undo(change_id)
