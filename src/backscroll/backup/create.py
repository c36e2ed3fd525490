"""Create a backup."""

import os
import platform
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from backscroll import __version__
from backscroll.archive.archive import Archive
from backscroll.archive.session_key import SessionKey
from backscroll.backup.container import (
    ARCHIVE_FILE,
    ARCHIVE_ROOT,
    BLOCK_BYTES,
    FORMAT_VERSION,
    entry_name,
    is_safe_path,
)
from backscroll.backup.folder import Target, check_space, check_target, publish
from backscroll.backup.reader import BackupReader
from backscroll.backup.snapshot import SnapshotQueue
from backscroll.backup.sources import FileToBackUp, files_to_back_up, own_files
from backscroll.backup.writer import BackupWriter
from backscroll.errors import BackupError, DatabaseUnreadableError
from backscroll.model.backup import (
    BackupBase,
    BackupFile,
    BackupManifest,
    BackupPlan,
    BackupProgress,
    BackupResult,
    BackupRoot,
    BackupStats,
    ProgressCallback,
    SkippedFile,
)
from backscroll.model.session import Filter, SessionSummary
from backscroll.readers.files import escape_name, is_utf8
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources import Source

_PHASES = {
    "file": "Backing up files",
    "database": "Backing up databases",
    "archive": "Backing up the archive",
}


class Selection(Struct, frozen=True):
    """Sessions of a filtered backup, and the filter that selected them."""

    sessions: tuple[SessionSummary, ...]
    filter: Filter


class BackupRequest(Struct, frozen=True, kw_only=True):
    """What to back up, and where to write it."""

    target: Target
    stats: BackupStats
    selection: Selection | None = None  # None: everything
    prices: Path | None = None  # the user's own price table
    base: Path | None = None  # files that have not changed since this backup are not written again
    with_secrets: bool = False  # keep the credentials in copies of databases


def plan_backup(request: BackupRequest, roots: Iterable[tuple[Source, Path]], archive: Archive) -> BackupPlan:
    """Return what `create_backup` would write. Raises `BackupError` for an unsuitable target or base.

    The size of a filtered backup includes files that will be reduced to the selected sessions.
    """
    check_target(request.target, request.base)
    _open_base(request)
    files = _list_files(request, roots, archive)
    check_space(request.target.path, archive.path.parent, files)
    return BackupPlan(
        backup_path=str(request.target.path),
        roots=tuple({file.root.name: file.root for file in files}.values()),
        file_count=len(files),
        size=sum(file.size for file in files),
        stats=request.stats,
    )


def create_backup(
    request: BackupRequest,
    roots: Iterable[tuple[Source, Path]],
    archive: Archive,
    progress: ProgressCallback | None = None,
) -> BackupResult:
    """Write a backup of all roots and the archive, or of selected sessions.

    The file gets its name when it is complete. Raises `BackupError` if `check_target` does, or if the file
    cannot be written.
    """
    target = request.target.path
    check_target(request.target, request.base)
    base = _open_base(request)
    report = progress or (lambda _: None)
    report(BackupProgress("Listing files", 0, 0))
    files = _list_files(request, roots, archive)
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_space(target, archive.path.parent, files)
        with (
            TempFolder(target.parent) as folder,
            # Copies of databases contain logins before they are cleaned: not on the disk of the backup.
            TempFolder(archive.path.parent) as scratch,
            BackupWriter(folder / "backup.zip") as writer,
            SnapshotQueue(scratch, with_secrets=request.with_secrets) as snapshots,
        ):
            run = _Run(request, base, writer, snapshots, scratch, archive, report)
            run.add(files)
            manifest = run.manifest(files)
            manifest = replace(manifest, id=writer.finish(manifest))
            target = publish(folder / "backup.zip", request.target)
    except OSError as error:
        raise BackupError(
            f"The backup {target} could not be written: {error.strerror or error}. Nothing was created.",
            target,
        ) from error
    stats = replace(manifest.stats, file_size=target.stat().st_size)
    return BackupResult(str(target), replace(manifest, stats=stats))


class _Base:
    """Files in a base backup, to which an incremental backup can refer."""

    def __init__(self, path: Path, *, with_secrets: bool) -> None:
        with BackupReader(path) as reader:
            self._manifest = reader.manifest
        if self._manifest.is_filtered:
            raise BackupError(
                f"{path} contains selected sessions only. The base of a backup must be complete.",
                path,
            )
        self._name = path.name
        # A database with credentials is no substitute for one without them, nor the reverse.
        self._has_same_databases = self._manifest.has_secrets == with_secrets
        roots = {root.name: root.path for root in self._manifest.roots}
        self._files = {(roots[file.root], file.path): file for file in self._manifest.files}

    def unchanged(self, file: FileToBackUp) -> BackupFile | None:
        """Return the file of the base if a file has the same size and time; None if it must be read.

        The size of a database is not compared: its copy is smaller.
        """
        found = self._find(file)
        if found is None or found.modified_ns != file.modified_ns:
            return None
        return self._refer(found, file) if file.kind != "file" or found.size == file.size else None

    def same_content(self, file: FileToBackUp, sha256: str) -> BackupFile | None:
        """Return the file of the base if it has this content."""
        found = self._find(file)
        return self._refer(found, file) if found is not None and found.sha256 == sha256 else None

    def needed(self, files: Iterable[BackupFile]) -> tuple[BackupBase, ...]:
        """Return the backups that contain files to which a new backup refers."""
        ids = {file.backup_id for file in files}
        known = (*self._manifest.bases, BackupBase(self._manifest.id, self._name))
        return tuple(base for base in known if base.id in ids)

    def _find(self, file: FileToBackUp) -> BackupFile | None:
        found = self._files.get((file.root.path, file.path))
        if found is None or found.kind != file.kind:
            return None
        return found if file.kind == "file" or self._has_same_databases else None

    def _refer(self, found: BackupFile, file: FileToBackUp) -> BackupFile:
        return replace(
            found,
            root=file.root.name,
            session_ids=file.session_ids,
            modified_ns=file.modified_ns,
            backup_id=found.backup_id or self._manifest.id,
        )


def _open_base(request: BackupRequest) -> _Base | None:
    if request.base is None:
        return None
    if request.selection is not None:
        raise BackupError(
            "A backup of selected sessions cannot be incremental.",
            request.target.path,
            hint="Leave out --base.",
        )
    return _Base(request.base, with_secrets=request.with_secrets)


def _list_files(
    request: BackupRequest, roots: Iterable[tuple[Source, Path]], archive: Archive
) -> list[FileToBackUp]:
    """Return all files: those of the tools, their databases, the program's own, and the archive."""
    if request.selection is not None:  # the archive has the files, rows and annotations of these sessions
        return [_archive_file(archive)]
    found = files_to_back_up(roots, archive.originals.session_ids_by_path())
    return [
        *sorted(found, key=lambda file: file.kind == "database"),
        *own_files(archive.path.parent, request.prices),
        _archive_file(archive),
    ]


def _archive_file(archive: Archive) -> FileToBackUp:
    root = BackupRoot(ARCHIVE_ROOT, "", str(archive.path.parent.absolute()))
    status = archive.path.stat()
    return FileToBackUp(root, ARCHIVE_FILE, archive.path, "archive", status.st_size, status.st_mtime_ns)


class _Run:
    """State of one backup while it is written."""

    def __init__(
        self,
        request: BackupRequest,
        base: _Base | None,
        writer: BackupWriter,
        snapshots: SnapshotQueue,
        folder: Path,
        archive: Archive,
        report: ProgressCallback,
    ) -> None:
        self._request = request
        self._base = base
        self._writer = writer
        self._snapshots = snapshots
        self._folder = folder
        self._archive = archive
        self._report = report
        self._files: list[BackupFile] = []
        self._skipped: list[SkippedFile] = []
        self._done = self._total = 0
        self._phase = ""

    def add(self, files: list[FileToBackUp]) -> None:
        """Add all files. A file that cannot be read is listed as skipped."""
        self._total = sum(file.size for file in files)
        databases = (file for file in files if file.kind == "database" and file.missing is None)
        self._snapshots.start(file for file in databases if self._unchanged(file) is None)
        for file in files:
            self._phase = _PHASES[file.kind if file.source is not None else "archive"]
            done_before = self._done
            try:
                _check_file(file)
                if (unchanged := self._unchanged(file)) is not None:
                    self._files.append(unchanged)
                elif file.kind == "file":
                    self._add_content(file, file.location)
                else:
                    self._add_copy(file)
            except _UnreadableError as error:
                self._skipped.append(SkippedFile(escape_name(str(file.location)), str(error)))
            self._done = done_before + file.size
            self._report(BackupProgress(self._phase, self._done, self._total))

    def _unchanged(self, file: FileToBackUp) -> BackupFile | None:
        return self._base.unchanged(file) if self._base is not None else None

    def manifest(self, files: list[FileToBackUp]) -> BackupManifest:
        """Return the table of contents."""
        selection = self._request.selection
        return BackupManifest(
            version=FORMAT_VERSION,
            created_at=datetime.now(UTC),
            platform=sys.platform,
            host=platform.node(),
            program=f"backscroll {__version__}",
            has_secrets=self._request.with_secrets,
            is_filtered=selection is not None,
            filter=selection.filter if selection is not None else None,
            sessions=tuple(one.ref for one in selection.sessions) if selection is not None else (),
            stats=self._request.stats,
            roots=self._roots(files),
            files=tuple(self._files),
            skipped=tuple(self._skipped),
            bases=self._base.needed(self._files) if self._base is not None else (),
        )

    def _roots(self, files: list[FileToBackUp]) -> tuple[BackupRoot, ...]:
        """Return all roots; of a filtered backup, those with files."""
        used = {file.root for file in self._files}
        found = {file.root.name: file.root for file in files}
        return tuple(root for name, root in found.items() if name in used or self._request.selection is None)

    def _add_copy(self, file: FileToBackUp) -> None:
        """Add a consistent copy of a database."""
        self._report(BackupProgress(self._phase, self._done, self._total))
        copy: Path | None = None
        try:
            copy = self._archive_copy() if file.source is None else self._snapshots.take(file)
            if (same := self._same_in_base(file, copy)) is not None:
                self._files.append(same)
            else:
                self._add_content(file, copy)
        except (DatabaseUnreadableError, sqlite3.Error) as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
                raise OSError(None, "no space is left on the disk") from error
            raise _UnreadableError(_reason(error, file)) from error
        finally:
            if copy is not None:
                copy.unlink(missing_ok=True)

    def _archive_copy(self) -> Path:
        copy = self._folder / "archive.db"
        if self._request.selection is None:
            self._archive.maintenance.copy(copy)
        else:
            sessions = [SessionKey(one.platform, one.id) for one in self._request.selection.sessions]
            self._archive.maintenance.copy_sessions(copy, sessions)
        return copy

    def _same_in_base(self, file: FileToBackUp, copy: Path) -> BackupFile | None:
        if self._base is None:
            return None
        with copy.open("rb") as opened:
            return self._base.same_content(file, file_digest(opened, "sha256").hexdigest())

    def _add_content(self, file: FileToBackUp, content: Path) -> None:
        try:
            opened = content.open("rb")
        except OSError as error:
            raise _UnreadableError(error.strerror or str(error)) from error
        with opened:
            status = os.fstat(opened.fileno())
            entry = entry_name(file.root.name, file.path)
            modified_ns = file.modified_ns if file.kind != "file" else status.st_mtime_ns
            blocks = _Blocks(opened, status.st_size)
            first = next(blocks, b"")  # fails before the entry is created
            if blocks.error is not None:
                raise _UnreadableError(blocks.error)
            written = self._writer.add(
                entry,
                self._counted(first, blocks),
                expected_bytes=status.st_size,
                modified_ns=modified_ns,
            )
        if blocks.error is not None:
            reason = f"{blocks.error}; only the first {written.size:,} bytes are in the backup"
            self._skipped.append(SkippedFile(str(file.location), reason))
        self._files.append(
            BackupFile(
                root=file.root.name,
                path=file.path,
                entry=entry,
                kind=file.kind,
                size=written.size,
                sha256=written.sha256,
                modified_ns=modified_ns,
                session_ids=file.session_ids,
                is_shared=file.is_shared,
            )
        )

    def _counted(self, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        block: bytes | None = first
        while block:
            yield block
            self._done += len(block)
            self._report(BackupProgress(self._phase, min(self._done, self._total), self._total))
            block = next(rest, None)


def _reason(error: Exception, file: FileToBackUp) -> str:
    """Return why a database cannot be read, without its path, which is listed before the reason."""
    return str(error).removeprefix(f"{file.location.resolve()} ")


def _check_file(file: FileToBackUp) -> None:
    if file.missing is not None:
        raise _UnreadableError(file.missing)
    if not is_utf8(file.path):
        raise _UnreadableError("its name is not UTF-8")
    if not is_safe_path(file.path):
        raise _UnreadableError("its name is not allowed in a backup")


class _UnreadableError(Exception):
    """A file cannot be read. The message is the reason."""


class _Blocks:
    """Iterator over the blocks of a file, up to its size at the start. It ends at an error and keeps it."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._remaining = size
        self.error: str | None = None

    def __iter__(self) -> "_Blocks":
        return self

    def __next__(self) -> bytes:
        try:
            block = self._file.read(min(BLOCK_BYTES, self._remaining))
        except OSError as error:
            self.error = error.strerror or str(error)
            raise StopIteration from error
        if not block:
            raise StopIteration
        self._remaining -= len(block)
        return block
