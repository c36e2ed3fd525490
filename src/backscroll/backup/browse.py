"""Read the sessions in a backup without restoring it."""

import os
import shutil
from pathlib import Path

from backscroll.backup.reader import BackupReader, FileDamagedError
from backscroll.errors import InvalidBackupError
from backscroll.model.safekeeping.backup import BackupFile
from backscroll.readers.temp_folder import TempFolder

__all__ = ["extract_archive"]

MAX_CACHED_BACKUPS = 2


def extract_archive(backup: Path, cache: Path) -> Path:
    """Extract the archive of a backup into a private folder of the cache, and return the folder.

    A folder is used again if the backup is opened again. The oldest folders are deleted. Raises
    `InvalidBackupError`.
    """
    with BackupReader(backup) as reader:
        folder = cache / reader.manifest.id[:32]
        files = [file for file in reader.manifest.files if file.kind == "archive"]
        if not files:
            raise InvalidBackupError(f"{backup} contains no archive.", backup)
        if not (folder / files[0].path).exists():
            _extract(reader, files[0], folder)
    os.utime(folder)
    _delete_oldest(cache)
    return folder


def _extract(reader: BackupReader, file: BackupFile, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with TempFolder(folder.parent) as temporary:
        target = temporary / "archive.db"
        target.touch(mode=0o600)
        try:
            with target.open("wb") as written:
                for block in reader.blocks(file):
                    written.write(block)
        except FileDamagedError as error:
            raise InvalidBackupError(
                f"The archive in {reader.path} is {error}. Run 'backscroll backup verify' for details.",
                reader.path,
            ) from error
        target.replace(folder / file.path)


def _delete_oldest(cache: Path) -> None:
    folders = [path for path in cache.iterdir() if path.is_dir() and not path.name.startswith("backscroll-")]
    for folder in sorted(folders, key=lambda path: path.stat().st_mtime)[:-MAX_CACHED_BACKUPS]:
        shutil.rmtree(folder, ignore_errors=True)
