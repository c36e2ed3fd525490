"""Restore a backup: its files, and the archive whose sessions are added to the tools' stores."""

import os
import shutil
import struct
import sys
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

from backscroll.archive.archive import Archive
from backscroll.archive.session_key import SessionKey
from backscroll.backup.reader import BackupReader, FileDamagedError
from backscroll.backup.restore_plan import (
    PlannedFile,
    Relocations,
    RestoreOptions,
    RestorePlan,
    make_plan,
)
from backscroll.changes.change_log import ChangeLog
from backscroll.errors import RestoreError, ToolRunningError
from backscroll.model.backup import ProgressCallback, RestoredFile
from backscroll.model.change import Change, ChangePlan, FileChange
from backscroll.model.stream import RawRow
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources import named, names

_CONNECTION_BYTE = 128  # UNIX_SHM_DMS in SQLite
_LAYOUTS = {"linux": "hhqqi4x", "darwin": "qqihh"}  # struct flock


class BackupRestore:
    """One restore of a backup: its plan, and a private copy of its archive with the paths of this machine.

    A context manager. Raises `InvalidBackupError` or `RestoreError`; then nothing is changed.
    """

    def __init__(
        self, backup: Path, options: RestoreOptions, progress: ProgressCallback | None = None
    ) -> None:
        options.archive_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.backup = backup
        self.options = options
        self._reader = BackupReader(backup)
        self._scratch = TempFolder(options.archive_folder)
        self._archive: Archive | None = None
        try:
            self._reader.check_bases()
            self._relocations = Relocations(self._reader, options, self._scratch.path)
            self.plan: RestorePlan = make_plan(
                self._reader, options, self._relocations, self._scratch.path, progress
            )
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._archive is not None:
            self._archive.close()
        self._reader.close()
        self._scratch.close()

    @property
    def is_filtered(self) -> bool:
        """Whether the backup contains selected sessions only. All of them are in its archive."""
        return self._reader.manifest.is_filtered

    @cached_property
    def archive(self) -> Archive | None:
        """The archive in the backup, with new paths; None if it is missing, damaged or of a newer version."""
        copy = self._copy_archive("sessions.db")
        if copy is not None:
            self._archive = Archive(copy)
        return self._archive

    def merge_archive(self, archive: Archive, sessions: Collection[SessionKey]) -> None:
        """Add those of the sessions, and their annotations, that an archive does not have."""
        if (copy := self._copy_archive("merged.db")) is not None:
            archive.maintenance.merge(copy, sessions)

    def _copy_archive(self, name: str) -> Path | None:
        copy = self._relocations.archive_copy
        if copy is None:
            return None
        target = self._scratch.path / name
        target.touch(mode=0o600)
        shutil.copyfile(copy, target)
        return target

    def relocated_row(self, source: str, root: Path, row: RawRow) -> RawRow:
        """Return an archived row with the paths of this machine."""
        return self._relocations.row(source, str(root), row) if self.options.maps else row

    @property
    def file_results(self) -> tuple[RestoredFile, ...]:
        return self.plan.results

    @property
    def created(self) -> frozenset[Path]:
        """The files that the restore creates or replaces, and those that are equal already."""
        return frozenset(
            one.target
            for one in self.plan.files
            if one.action in ("create", "replace") or one.lines or one.is_equal
        )

    def check_processes(self) -> None:
        """Raise `ToolRunningError` if a process has open what would be changed."""
        _check_file_processes(_changed(self.plan))

    def apply(self, log: ChangeLog, batch: str) -> Change | None:
        """Restore the files. Return the change; None if there is nothing to restore."""
        changed = _changed(self.plan)
        lines = tuple(line for one in self.plan.files for line in one.lines)
        if not changed and not lines:
            return None
        sessions = {f"{one.source}:{id_}" for one in changed for id_ in one.file.session_ids}
        plan = ChangePlan(
            what=f"Restore {self.backup.name}",
            sessions=tuple(sorted(sessions)),
            files=tuple(map(_file_change, changed)),
            lines=lines,
            batch=batch,
        )
        try:
            change = log.apply(plan)
        except FileDamagedError as error:
            raise RestoreError(f"{self.backup} changed while it was read: {error}.", self.backup) from error
        _set_times(changed)
        if any(one.file.kind == "archive" for one in changed):
            shutil.rmtree(self.options.archive_folder / "index", ignore_errors=True)  # of the former archive
        return change


def _changed(plan: RestorePlan) -> list[PlannedFile]:
    return [one for one in plan.files if one.action in ("create", "replace")]


def _file_change(one: PlannedFile) -> FileChange:
    return FileChange(
        path=one.target,
        content=one.content,
        before=one.current_hash,
        size=one.file.size,
        label=one.file.kind,
        # Commands add to the archive and to journals. Undo of the tools' files must not depend on it.
        is_left_if_changed=not one.source,
    )


def _check_file_processes(changed: Iterable[PlannedFile]) -> None:
    changed = list(changed)
    session_ids: dict[tuple[str, Path], set[str]] = {}
    for one in changed:
        if one.source:
            session_ids.setdefault((one.source, one.root), set()).update(one.file.session_ids)
    for (name, root), ids in session_ids.items():
        writer = named(name).writer()
        for process in writer.blocking_processes(root, ids) if writer is not None else ():
            raise ToolRunningError(process.reason, process.pid)
    for one in changed:
        pid = _process_holding(one.target) if one.file.kind != "file" else None
        if pid is None and one.source and len(one.file.session_ids) == 1:
            processes = named(one.source).processes()
            pid = processes.open_process(one.root, one.file.session_ids[0]) if processes is not None else None
        refuse_if_open(pid, one.target)


def _process_holding(database: Path) -> int | None:
    """Return the id of a process that has a database open; None if no process is known."""
    layout = _LAYOUTS.get(sys.platform)
    if layout is None:
        return None
    import fcntl  # not on Windows

    shm = database.with_name(f"{database.name}-shm")
    try:
        with shm.open("rb") as file:
            if sys.platform == "darwin":
                request = struct.pack(layout, _CONNECTION_BYTE, 1, 0, fcntl.F_WRLCK, 0)
                _, _, pid, kind, _ = struct.unpack(layout, fcntl.fcntl(file, fcntl.F_GETLK, request))
            else:
                request = struct.pack(layout, fcntl.F_WRLCK, 0, _CONNECTION_BYTE, 1, 0)
                kind, _, _, _, pid = struct.unpack(layout, fcntl.fcntl(file, fcntl.F_GETLK, request))
    except OSError:
        return None
    return int(pid) if kind != fcntl.F_UNLCK and pid > 0 else None


def refuse_if_open(pid: int | None, path: Path) -> None:
    if pid is not None:
        raise ToolRunningError(f"Process {pid} has {path} open. Close that program, then restore again.", pid)


def check_database(database: Path) -> None:
    """Raise `ToolRunningError` if a process has a database open."""
    refuse_if_open(_process_holding(database), database)


def _set_times(changed: Iterable[PlannedFile]) -> None:
    """Set the original modification times. Tools with a retention period delete old files by this time."""
    retained = {name for name in names() if named(name).retention() is not None}
    for one in changed:
        if one.source not in retained:
            with suppress(OSError):
                os.utime(one.target, ns=(one.file.modified_ns, one.file.modified_ns))
