"""The folder of backups: list and prune them, check the place of a new one, and publish it."""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from backscroll.backup.reader import BackupReader
from backscroll.backup.sources import FileToBackUp
from backscroll.errors import BackupError, InvalidBackupError
from backscroll.model.backup import BackupManifest, BackupSummary

_SUFFIX = ".zip"
_COPIES = 3  # of the largest database: one is compressed while the next is copied and cleaned
_EXPECTED_RATIO = 2  # histories compress to a third; the space check assumes half


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


def _age(summary: BackupSummary) -> float:
    return -summary.manifest.created_at.timestamp() if summary.manifest is not None else 0.0


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


def check_target(target: Path, base: Path | None = None, *, force: bool) -> None:
    """Raise `BackupError` if the file exists, unless ``force``, or is in another folder than its base."""
    if base is not None and base.parent.resolve() != target.parent.resolve():
        raise BackupError(
            f"An incremental backup must be in the folder of its base, {base.parent}.",
            target,
            hint="Use --dir or -o.",
        )
    if target.is_dir():
        raise BackupError(f"{target} is a folder.", target, hint="Name a file, or use --dir.")
    if not force and target.exists():
        raise BackupError(f"{target} exists.", target, hint="Name another file, or replace it with --force.")


def check_space(target: Path, scratch: Path, files: list[FileToBackUp]) -> None:
    """Raise `BackupError` if a disk has not enough space for the backup, or the copies of databases.

    ``scratch`` is the folder of the copies.
    """
    largest_copy = max((file.size for file in files if file.kind != "file"), default=0)
    folder = next((folder for folder in target.parents if folder.exists()), Path(target.anchor))
    needed = {folder: sum(file.size for file in files) // _EXPECTED_RATIO}
    if folder.stat().st_dev == scratch.stat().st_dev:
        needed[folder] += _COPIES * largest_copy
    else:
        needed[scratch] = _COPIES * largest_copy
    for place, size in needed.items():
        free = shutil.disk_usage(place).free
        if free < size:
            raise BackupError(
                f"The backup needs about {size / 1e6:,.0f} MB in {place}, and {free / 1e6:,.0f} MB are free.",
                target,
                hint="Free disk space, or choose another folder with --dir.",
            )


def publish(written: Path, target: Path, *, force: bool) -> None:
    """Give the complete file its name. Raises `BackupError` if it exists, unless ``force`` replaces it."""
    if force:
        written.replace(target)
    else:
        try:
            os.link(written, target)  # unlike a rename, this never replaces a file
        except FileExistsError as error:
            raise BackupError(f"{target} exists. Nothing was replaced.", target) from error
        except OSError:  # a file system without links
            check_target(target, force=False)
            written.rename(target)
    with suppress(OSError):  # not supported on all systems
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
