"""Backups: content, manifest, validation and results."""

from collections.abc import Callable
from datetime import datetime
from typing import Literal, NamedTuple

from msgspec import Struct

__all__ = [
    "BackupBase",
    "BackupFile",
    "BackupManifest",
    "BackupPlan",
    "BackupProgress",
    "BackupResult",
    "BackupRoot",
    "BackupStats",
    "BackupSummary",
    "BackupValidation",
    "FileCheck",
    "FileKind",
    "ProgressCallback",
    "RestoreAction",
    "RestoreResult",
    "RestoredFile",
    "SkippedFile",
    "SourceFile",
    "ValidationStatus",
]

FileKind = Literal["file", "database", "archive"]
ValidationStatus = Literal["valid", "warnings", "invalid"]


class SourceFile(NamedTuple):
    """A file of a tool that belongs in a backup."""

    path: str  # absolute
    session_id: str | None = None  # the session that owns it; None if several sessions share it
    is_database: bool = False


class BackupRoot(Struct, frozen=True):
    """A folder that was backed up. Paths of files are relative to it."""

    name: str  # unique in the backup; the first folder of its entries
    source: str  # empty for the folder of the archive
    path: str


class BackupFile(Struct, frozen=True):
    """A file in a backup."""

    root: str  # name of a `BackupRoot`
    path: str  # relative to the root, with forward slashes
    entry: str  # name of the entry in the ZIP file
    kind: FileKind
    size: int  # bytes, uncompressed
    sha256: str  # of the uncompressed content, in hexadecimal
    modified_ns: int  # nanoseconds since 1970
    session_ids: tuple[str, ...] = ()  # sessions in the file
    backup_id: str | None = None  # the backup that contains the entry; None if it is this one


class SkippedFile(Struct, frozen=True):
    """A file that could not be backed up."""

    path: str
    reason: str


class BackupBase(Struct, frozen=True):
    """A backup that an incremental backup depends on."""

    id: str
    name: str  # of its file


class BackupStats(Struct, frozen=True):
    """Counts of a backup."""

    session_count: int
    message_count: int
    file_size: int | None = None  # bytes of the backup file; set when the manifest is read


class BackupManifest(Struct, frozen=True, kw_only=True):
    """Table of contents of a backup."""

    version: str  # of the backup format
    created_at: datetime
    platform: str  # operating system: value of sys.platform
    program: str  # name and version of the program that wrote the backup
    has_secrets: bool
    is_filtered: bool  # contains selected sessions only
    stats: BackupStats
    roots: tuple[BackupRoot, ...]
    files: tuple[BackupFile, ...]
    skipped: tuple[SkippedFile, ...] = ()
    bases: tuple[BackupBase, ...] = ()  # needed to restore an incremental backup
    id: str = ""  # SHA-256 of the manifest; set when the manifest is read

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources, each once."""
        return tuple(dict.fromkeys(root.source for root in self.roots if root.source))


class BackupPlan(Struct, frozen=True, kw_only=True):
    """A backup that was planned. Nothing has been written yet."""

    backup_path: str
    roots: tuple[BackupRoot, ...]
    file_count: int
    size: int  # bytes of the files, uncompressed
    stats: BackupStats


class BackupResult(Struct, frozen=True):
    """A backup that was created."""

    backup_path: str
    manifest: BackupManifest


RestoreAction = Literal["create", "replace", "unchanged", "kept", "damaged", "shared"]


class RestoredFile(Struct, frozen=True):
    """What a restore does with one file of a backup.

    ``kept``: an existing file differs, and was not to be replaced. ``damaged``: the content in the backup is
    not valid. ``shared``: the database contains other sessions than the selected ones.
    """

    path: str
    action: RestoreAction
    size: int
    reason: str | None = None


class RestoreResult(Struct, frozen=True, kw_only=True):
    """A restore that was planned or done."""

    files: tuple[RestoredFile, ...]
    files_restored: int = 0
    sessions_restored: int = 0
    change_id: str | None = None  # id in the change log; None if nothing was changed
    warnings: tuple[str, ...] = ()
    blocked_by: str | None = None  # of a plan: why it cannot be applied now


class BackupSummary(Struct, frozen=True):
    """A file in a folder of backups."""

    path: str
    manifest: BackupManifest | None  # None if the file is not a readable backup
    problem: str | None = None


class FileCheck(Struct, frozen=True):
    """Result of the check of one file in a backup."""

    path: str  # where the file was
    status: ValidationStatus
    reason: str | None = None


class BackupValidation(Struct, frozen=True):
    """Result of the check of a backup."""

    status: ValidationStatus
    files: tuple[FileCheck, ...]
    problems: tuple[str, ...] = ()  # sentences about the backup as a whole
    manifest: BackupManifest | None = None  # None if it cannot be read


class BackupProgress(NamedTuple):
    """Progress of one phase, in bytes."""

    phase: str
    done: int
    total: int


ProgressCallback = Callable[[BackupProgress], None]
