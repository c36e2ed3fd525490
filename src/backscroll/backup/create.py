"""Create a backup."""

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path
from typing import BinaryIO

from msgspec.structs import replace

from backscroll import __version__
from backscroll.archive import Archive
from backscroll.backup.base import Base
from backscroll.backup.compression import BLOCK_BYTES
from backscroll.backup.container import FORMAT_VERSION, entry_name, is_safe_path
from backscroll.backup.snapshot import take_snapshot
from backscroll.backup.sources import FileToBackUp, files_to_back_up
from backscroll.backup.writer import BackupWriter
from backscroll.errors import BackupError, DatabaseUnreadableError
from backscroll.model.backup import (
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
from backscroll.readers.file_names import escape_name, is_utf8
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources import Source

__all__ = ["create_backup", "plan_backup"]

ARCHIVE_ROOT = "archive"
_EXPECTED_RATIO = 2  # histories compress to a third; the space check assumes half
_PHASES = {
    "file": "Backing up files",
    "database": "Backing up databases",
    "archive": "Backing up the archive",
}


def plan_backup(
    target: Path,
    roots: Iterable[tuple[Source, Path]],
    archive: Archive,
    stats: BackupStats,
    *,
    base: Path | None = None,
    force: bool = False,
    with_secrets: bool = False,
) -> BackupPlan:
    """Return what `create_backup` would write. Raises `BackupError` for an unsuitable target or base."""
    _check_target(target, base, force=force)
    if base is not None:
        Base(base, with_secrets=with_secrets)
    files = _list_files(roots, archive)
    _check_space(target, files)
    return BackupPlan(
        backup_path=str(target),
        roots=_roots(files),
        file_count=len(files),
        size=sum(file.size for file in files),
        stats=stats,
    )


def create_backup(
    target: Path,
    roots: Iterable[tuple[Source, Path]],
    archive: Archive,
    stats: BackupStats,
    *,
    base: Path | None = None,
    force: bool = False,
    with_secrets: bool = False,
    progress: ProgressCallback | None = None,
) -> BackupResult:
    """Write a backup of all roots and the archive.

    With a base, files that have not changed since are not written again. The file gets its name when it is
    complete. Raises `BackupError` if it exists, unless ``force`` replaces it, or if it cannot be written.
    """
    _check_target(target, base, force=force)
    found_base = Base(base, with_secrets=with_secrets) if base is not None else None
    report = progress or (lambda _: None)
    report(BackupProgress("Listing files", 0, 0))
    files = _list_files(roots, archive)
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _check_space(target, files)
        with TempFolder(target.parent) as folder, BackupWriter(folder / "backup.zip") as writer:
            run = _Run(writer, folder, archive, report, base=found_base, with_secrets=with_secrets)
            run.add(files)
            manifest = run.manifest(files, stats)
            manifest = replace(manifest, id=writer.finish(manifest))
            _publish(folder / "backup.zip", target, force=force)
    except OSError as error:
        raise BackupError(
            f"The backup {target} could not be written: {error.strerror or error}. Nothing was created.",
            target,
        ) from error
    stats = replace(manifest.stats, file_size=target.stat().st_size)
    return BackupResult(str(target), replace(manifest, stats=stats))


class _Run:
    """State of one backup while it is written."""

    def __init__(
        self,
        writer: BackupWriter,
        folder: Path,
        archive: Archive,
        report: ProgressCallback,
        *,
        base: Base | None,
        with_secrets: bool,
    ) -> None:
        self._writer = writer
        self._folder = folder
        self._archive = archive
        self._report = report
        self._base = base
        self._with_secrets = with_secrets
        self._files: list[BackupFile] = []
        self._skipped: list[SkippedFile] = []
        self._done = self._total = 0
        self._phase = ""

    def add(self, files: list[FileToBackUp]) -> None:
        """Add all files. A file that cannot be read is listed as skipped."""
        self._total = sum(file.size for file in files)
        for file in files:
            self._phase = _PHASES[file.kind]
            done_before = self._done
            try:
                _check_name(file)
                if self._base is not None and (unchanged := self._base.unchanged(file)) is not None:
                    self._files.append(unchanged)
                elif file.kind == "file":
                    self._add_content(file, file.location)
                else:
                    self._add_copy(file)
            except _UnreadableError as error:
                self._skipped.append(SkippedFile(escape_name(str(file.location)), str(error)))
            self._done = done_before + file.size
            self._report(BackupProgress(self._phase, self._done, self._total))

    def manifest(self, files: list[FileToBackUp], stats: BackupStats) -> BackupManifest:
        """Return the table of contents."""
        return BackupManifest(
            version=FORMAT_VERSION,
            created_at=datetime.now(UTC),
            platform=sys.platform,
            program=f"backscroll {__version__}",
            has_secrets=self._with_secrets,
            is_filtered=False,
            stats=stats,
            roots=_roots(files),
            files=tuple(self._files),
            skipped=tuple(self._skipped),
            bases=self._base.needed(self._files) if self._base is not None else (),
        )

    def _add_copy(self, file: FileToBackUp) -> None:
        """Add a consistent copy of a database."""
        self._report(BackupProgress(self._phase, self._done, self._total))
        copy: Path | None = None
        try:
            if file.source is None:
                copy = self._folder / "archive.db"
                self._archive.maintenance.copy(copy)
            else:
                remove_secrets = None if self._with_secrets else file.source.remove_secrets
                copy = take_snapshot(file.location, self._folder, remove_secrets)
            if (same := self._same_in_base(file, copy)) is not None:
                self._files.append(same)
            else:
                self._add_content(file, copy)
        except (DatabaseUnreadableError, sqlite3.Error) as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_FULL:
                raise OSError(None, "no space is left on the disk") from error
            raise _UnreadableError(str(error)) from error
        finally:
            if copy is not None:
                copy.unlink(missing_ok=True)

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
            )
        )

    def _counted(self, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        block: bytes | None = first
        while block:
            yield block
            self._done += len(block)
            self._report(BackupProgress(self._phase, min(self._done, self._total), self._total))
            block = next(rest, None)


def _check_name(file: FileToBackUp) -> None:
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


def _list_files(roots: Iterable[tuple[Source, Path]], archive: Archive) -> list[FileToBackUp]:
    """Return all files: first those of the tools, then their databases, then the archive."""
    found = files_to_back_up(roots, archive.originals.session_ids_by_path())
    return [*sorted(found, key=lambda file: file.kind == "database"), _archive_file(archive)]


def _roots(files: Iterable[FileToBackUp]) -> tuple[BackupRoot, ...]:
    return tuple({file.root.name: file.root for file in files}.values())


def _archive_file(archive: Archive) -> FileToBackUp:
    root = BackupRoot(ARCHIVE_ROOT, "", str(archive.path.parent.absolute()))
    status = archive.path.stat()
    return FileToBackUp(root, archive.path.name, archive.path, "archive", status.st_size, status.st_mtime_ns)


def _check_target(target: Path, base: Path | None = None, *, force: bool) -> None:
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


def _check_space(target: Path, files: list[FileToBackUp]) -> None:
    """Raise `BackupError` if the disk has not enough space for the backup and the copies of databases."""
    largest_copy = max((file.size for file in files if file.kind != "file"), default=0)
    needed = sum(file.size for file in files) // _EXPECTED_RATIO + 2 * largest_copy
    folder = next((folder for folder in target.parents if folder.exists()), Path(target.anchor))
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise BackupError(
            f"The backup needs about {needed / 1e6:,.0f} MB in {target.parent}, and {free / 1e6:,.0f} MB are"
            " free.",
            target,
            hint="Free disk space, or choose another folder with --dir.",
        )


def _publish(written: Path, target: Path, *, force: bool) -> None:
    """Give the complete file its name."""
    if force:
        written.replace(target)
    else:
        try:
            os.link(written, target)  # unlike a rename, this never replaces a file
        except FileExistsError as error:
            raise BackupError(f"{target} exists. Nothing was replaced.", target) from error
        except OSError:  # a file system without links
            _check_target(target, force=False)
            written.rename(target)
    with suppress(OSError):  # not supported on all systems
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
