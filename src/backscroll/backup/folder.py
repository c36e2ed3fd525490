"""The folder of backups."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from backscroll.backup.reader import BackupReader
from backscroll.errors import BackupError, InvalidBackupError
from backscroll.model.safekeeping.backup import BackupManifest, BackupSummary

__all__ = ["delete_backup", "list_backups", "new_backup_path", "prunable_backups", "read_manifest"]

_SUFFIX = ".zip"


def new_backup_path(folder: Path, now: datetime | None = None) -> Path:
    """Return a name for a new backup that does not exist in a folder."""
    stem = (now or datetime.now(UTC)).strftime("backscroll-%Y%m%d-%H%M%S")
    path, number = folder / f"{stem}{_SUFFIX}", 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}{_SUFFIX}"
    return path


def read_manifest(path: Path) -> BackupManifest:
    """Return the table of contents of a backup. Raises `InvalidBackupError`."""
    with BackupReader(path) as reader:
        return reader.manifest


def list_backups(folder: Path) -> list[BackupSummary]:
    """Return the backups in a folder, newest first; files that cannot be read as backups come last."""
    try:
        paths = sorted(folder.glob(f"*{_SUFFIX}")) if folder.is_dir() else []
    except OSError as error:
        raise BackupError(f"Cannot list {folder}: {error.strerror}.", folder) from error
    found: list[BackupSummary] = []
    for path in paths:
        try:
            found.append(BackupSummary(str(path), read_manifest(path)))
        except InvalidBackupError as error:
            found.append(BackupSummary(str(path), None, str(error)))
    return sorted(found, key=_age)


def prunable_backups(backups: Sequence[BackupSummary], keep: int) -> list[BackupSummary]:
    """Return the backups that may be deleted: all but the newest ones, and the bases that those need.

    Files that cannot be read as backups are never returned.
    """
    readable = [backup for backup in backups if backup.manifest is not None]
    kept = readable[:keep]
    needed = {base.id for backup in kept if backup.manifest for base in backup.manifest.bases}
    return [backup for backup in readable[keep:] if backup.manifest and backup.manifest.id not in needed]


def delete_backup(backup: BackupSummary) -> None:
    """Delete the file of a backup. Raises `BackupError`."""
    try:
        Path(backup.path).unlink(missing_ok=True)
    except OSError as error:
        raise BackupError(f"Cannot delete {backup.path}: {error.strerror}.", backup.path) from error


def _age(summary: BackupSummary) -> float:
    return -summary.manifest.created_at.timestamp() if summary.manifest is not None else 0.0
