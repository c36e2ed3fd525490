"""Check every file of a backup."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from backscroll.backup.reader import BackupReader, FileDamagedError
from backscroll.errors import InvalidBackupError
from backscroll.model.safekeeping.backup import (
    BackupFile,
    BackupManifest,
    BackupProgress,
    BackupValidation,
    FileCheck,
    ProgressCallback,
    ValidationStatus,
)

__all__ = ["check_files", "file_location", "verify_backup"]

_MAX_THREADS = 4
_PHASE = "Verifying"


def verify_backup(path: Path, progress: ProgressCallback | None = None) -> BackupValidation:
    """Read and check a whole backup."""
    try:
        reader = BackupReader(path)
    except InvalidBackupError as error:
        return BackupValidation("invalid", (), (str(error),))
    with reader:
        checks = check_files(reader, reader.manifest.files, progress)
        problems = _problems(reader)
    status: ValidationStatus = "valid"
    if any(check.status == "invalid" for check in checks):
        status = "invalid"
    elif problems:
        status = "warnings"
    return BackupValidation(status, tuple(checks), tuple(problems), reader.manifest)


def check_files(
    reader: BackupReader, files: tuple[BackupFile, ...], progress: ProgressCallback | None = None
) -> list[FileCheck]:
    """Read files of a backup to their ends and compare them with the manifest, in several threads."""
    total, done = sum(file.size for file in files), 0
    checks: list[FileCheck] = []
    threads = min(os.cpu_count() or 1, _MAX_THREADS)
    with ThreadPoolExecutor(threads) as pool:
        for file, check in zip(files, pool.map(_checker(reader), files), strict=True):
            checks.append(check)
            done += file.size
            if progress is not None:
                progress(BackupProgress(_PHASE, done, total))
    return checks


def _checker(reader: BackupReader) -> Callable[[BackupFile], FileCheck]:
    def check(file: BackupFile) -> FileCheck:
        location = file_location(reader.manifest, file)
        try:
            for _ in reader.blocks(file):
                pass
        except FileDamagedError as error:
            return FileCheck(location, "invalid", str(error))
        return FileCheck(location, "valid")

    return check


def _problems(reader: BackupReader) -> list[str]:
    """Return the warnings about a backup as a whole."""
    problems = [
        f"{skipped.path} is not in the backup: {skipped.reason}" for skipped in reader.manifest.skipped
    ]
    try:
        reader.check_bases()
    except InvalidBackupError as error:
        problems.append(str(error))
    if not reader.has_valid_seal():
        problems.append("Bytes of the backup file changed after it was written.")
    return problems


def file_location(manifest: BackupManifest, file: BackupFile) -> str:
    """Return where a file was when it was backed up."""
    root = next(root.path for root in manifest.roots if root.name == file.root)
    separator = "\\" if "\\" in root and "/" not in root else "/"
    return f"{root}{separator}{file.path.replace('/', separator)}"
