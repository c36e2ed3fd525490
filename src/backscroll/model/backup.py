"""Backups: content, manifest, validation and results."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Literal, NamedTuple

from msgspec import Struct

from backscroll.model.change import Change
from backscroll.model.session import Filter

FileKind = Literal["file", "database", "archive"]
ValidationStatus = Literal["valid", "warnings", "invalid"]


class SourceFile(NamedTuple):
    """A file of a tool that belongs in a backup."""

    path: str  # absolute
    session_id: str | None = None  # the session that owns it; None if several sessions share it
    is_database: bool = False
    is_shared: bool = False  # belongs to several sessions; some of them can be copied from it
    missing: str | None = None  # why it cannot be in a backup


class BackupFolder(NamedTuple):
    """The files of one root in a backup, to read, and what is known about their sessions."""

    paths: tuple[str, ...]  # relative to the root, with forward slashes
    read: Callable[[str], Iterator[bytes]]
    workspaces: tuple[str, ...]  # folders of the sessions in the backup


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
    is_shared: bool = False  # belongs to several sessions; some of them can be copied from it
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
    host: str = ""  # name of the machine
    program: str  # name and version of the program that wrote the backup
    has_secrets: bool
    is_filtered: bool  # contains selected sessions only
    filter: Filter | None = None  # of a filtered backup
    sessions: tuple[str, ...] = ()  # refs of the sessions in a filtered backup
    stats: BackupStats
    roots: tuple[BackupRoot, ...]
    files: tuple[BackupFile, ...]
    skipped: tuple[SkippedFile, ...] = ()
    bases: tuple[BackupBase, ...] = ()  # needed to restore an incremental backup
    id: str = ""  # SHA-256 of the manifest; set when the manifest is read

    @property
    def origin(self) -> tuple[str, str]:
        """The machine and the folder of the archive: backups of several may be in one folder."""
        return self.host, next((root.path for root in self.roots if not root.source), "")

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources, each once. A filtered backup has only an archive."""
        names = [root.source for root in self.roots if root.source]
        return tuple(dict.fromkeys([*names, *(ref.partition(":")[0] for ref in self.sessions)]))


class BackupDetails(Struct, frozen=True, kw_only=True):
    """What a backup contains for reading: the settings, and the change log, newest first."""

    manifest: BackupManifest
    settings: str | None = None  # the text of config.toml; None without one
    changes: tuple[Change, ...] = ()


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


RestoreAction = Literal["create", "replace", "insert", "unchanged", "kept", "damaged"]


class RestoredFile(Struct, frozen=True):
    """What a restore does with one file of a backup.

    ``insert``: rows or lines are added to an existing file. ``kept``: what exists differs, and was not to be
    replaced. ``damaged``: the content in the backup is not valid.
    """

    path: str
    action: RestoreAction
    size: int
    reason: str | None = None
    session_id: str | None = None  # set if the action concerns one session of the file
    row_count: int = 0  # rows or lines to insert or replace


Prefer = Literal["machine", "backup"]  # which of two that differ is kept
SessionAction = Literal["added", "kept", "differing"]


class RestoredSession(Struct, frozen=True):
    """What a restore does with one session of a backup.

    ``added``: it is missing in the tool's store or in the archive. ``kept``: it is there already.
    ``differing``: it is there with other content, or cannot be added; ``reason`` says why.
    """

    ref: str
    action: SessionAction
    reason: str | None = None


class RestoreResult(Struct, frozen=True, kw_only=True):
    """A restore that was planned or done."""

    files: tuple[RestoredFile, ...]
    sessions: tuple[RestoredSession, ...] = ()
    files_restored: int = 0
    sessions_restored: int = 0
    annotations_restored: int = 0  # tags, stars, notes and titles
    change_id: str | None = None  # id in the change log; None if nothing was changed
    warnings: tuple[str, ...] = ()
    blocked_by: str | None = None  # of a plan: why it cannot be applied now

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to restore."""
        return not (self.files_restored or self.sessions_restored or self.annotations_restored)


class BackupSummary(Struct, frozen=True):
    """A file in a folder of backups."""

    path: str
    manifest: BackupManifest | None  # None if the file is not a readable backup
    problem: str | None = None


class KeepRules(Struct, frozen=True, kw_only=True):
    """How many backups are kept: the newest ones, and the newest of each day, week and month."""

    last: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0


NIGHTLY_RULES = KeepRules(daily=7, weekly=4, monthly=12)

# Which rule keeps a backup. "base": another kept one needs it. The others are kept without being counted;
# "other": of another machine or archive.
KeepReason = Literal[
    "last",
    "daily",
    "weekly",
    "monthly",
    "base",
    "incomplete",
    "damaged",
    "filtered",
    "named",
    "other",
    "unreadable",
]


class BackupVerdict(Struct, frozen=True, kw_only=True):
    """Whether a backup is kept when a folder is pruned, and why."""

    backup: BackupSummary
    reasons: tuple[KeepReason, ...]  # empty if it is deleted
    needed_by: tuple[str, ...] = ()  # names of kept incremental backups

    @property
    def is_kept(self) -> bool:
        return bool(self.reasons)


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


class NightlyResult(Struct, frozen=True, kw_only=True):
    """What a nightly backup did."""

    created: BackupResult
    validation: BackupValidation
    verdicts: tuple[BackupVerdict, ...] = ()  # empty if the new backup is invalid: then nothing is deleted

    @property
    def deleted(self) -> tuple[str, ...]:
        return tuple(one.backup.path for one in self.verdicts if not one.is_kept)


class BackupProgress(NamedTuple):
    """Progress of one phase, in bytes."""

    phase: str
    done: int
    total: int


ProgressCallback = Callable[[BackupProgress], None]
