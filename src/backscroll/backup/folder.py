"""The folder of backups: list and delete them, check the place of a new one, and publish it."""

import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

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
    while os.path.lexists(path):
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


def delete_backup(backup: BackupSummary) -> None:
    """Delete the file of a backup. Raises `BackupError`."""
    try:
        Path(backup.path).unlink(missing_ok=True)
    except OSError as error:
        raise BackupError(f"Cannot delete {backup.path}: {error.strerror}.", backup.path) from error


class Places(Struct, frozen=True):
    """Folders of this machine in which no backup is written, and the one that is created for them."""

    archive_folder: Path
    folder: Path  # of backups: as in the settings, else `default_folder`
    roots: tuple[Path, ...] = ()  # of all tools

    @property
    def default_folder(self) -> Path:
        """The folder beside the archive. Any other one may be on a disk that is not mounted."""
        return self.archive_folder / "backups"

    def check(self, target: Path) -> None:
        """Raise `BackupError` if a file would be below a root of a tool, or in the folder of the archive."""
        if _is_inside(target.parent, self.archive_folder):
            own = {self.folder, self.default_folder} - {self.archive_folder}
            if not any(_is_inside(target.parent, folder) for folder in own):
                raise BackupError(
                    f"{target} is in the folder of the archive.",
                    target,
                    hint=f"Write the backup to {self.default_folder} or to another disk.",
                )
            return
        for root in self.roots:
            if _is_inside(target.parent, root):
                raise BackupError(
                    f"{target} is in {root}, a folder of a tool. A tool may delete files in it.",
                    target,
                    hint="Choose another folder.",
                )


class Target(Struct, frozen=True):
    """Where a new backup is written."""

    path: Path
    places: Places
    is_named: bool = True  # False: another free name is as good
    force: bool = False  # replace a backup that nothing needs
    create_folder: bool = False  # create a missing folder


def check_target(target: Target, base: Path | None = None) -> None:
    """Raise `BackupError` if no backup can be written there. Nothing is created or replaced."""
    path = target.path
    if base is not None and base.parent.resolve() != path.parent.resolve():
        raise BackupError(
            f"An incremental backup must be in the folder of its base, {base.parent}.",
            path,
            hint="Use --dir or -o.",
        )
    if base is not None and base.resolve() == path.resolve():
        raise BackupError(f"{path} is the base of the new backup.", path, hint="Name another file.")
    target.places.check(path)
    if path.is_dir():
        raise BackupError(f"{path} is a folder.", path, hint="Name a file, or use --dir.")
    if os.path.lexists(path) and target.is_named:
        if not target.force:
            raise BackupError(f"{path} exists.", path, hint="Name another file, or replace it with --force.")
        _check_replaceable(path)
    is_created = target.create_folder or path.parent == target.places.default_folder
    if not is_created and not path.parent.is_dir():
        raise BackupError(
            f"There is no folder {path.parent}.", path, hint="Mount its disk, or pass --create to create it."
        )


def _check_replaceable(path: Path) -> None:
    """Raise `BackupError` unless a file is a backup that no other one in its folder needs."""
    try:
        replaced = read_manifest(path)
    except InvalidBackupError as error:
        raise BackupError(
            f"{path} is not a backup that can be read. --force replaces only backups.",
            path,
            hint="Name another file.",
        ) from error
    for other in list_backups(path.parent):
        if any(base.id == replaced.id for base in (other.manifest.bases if other.manifest else ())):
            raise BackupError(
                f"{path} is needed by the incremental backup {Path(other.path).name}. Nothing was replaced.",
                path,
                hint="Name another file.",
            )


def _is_inside(path: Path, folder: Path) -> bool:
    """Return whether a path is a folder or below it, whatever links and letter case it has."""
    path, folder = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    if path.is_relative_to(folder):
        return True
    try:
        status = folder.stat()
    except OSError:
        return False
    for parent in (path, *path.parents):
        with suppress(OSError):
            if os.path.samestat(parent.stat(), status):
                return True
    return False


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


def publish(written: Path, target: Target) -> Path:
    """Give the complete file its name and return it. Raises `BackupError` if it may not be replaced."""
    path = target.path
    if target.force and target.is_named:
        if os.path.lexists(path):
            _check_replaceable(path)
        written.replace(path)
    else:
        while not _rename_to_new(written, path):
            if target.is_named:
                raise BackupError(f"{path} exists. Nothing was replaced.", path)
            path = new_backup_path(path.parent)
    with suppress(OSError):  # not supported on all systems
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    return path


def _rename_to_new(written: Path, path: Path) -> bool:
    """Rename a file. Return False if the name is taken: another process may have used it just now."""
    try:
        os.link(written, path)  # unlike a rename, this never replaces a file
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            return False
        try:
            written.replace(path)
        except OSError:
            path.unlink(missing_ok=True)
            raise
    return True
