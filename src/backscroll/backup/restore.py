"""Restore a backup: all of it, one source, or some sessions."""

import os
import shutil
import sqlite3
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from msgspec.structs import replace

from backscroll.backup.reader import BackupReader, FileDamagedError
from backscroll.backup.restore_plan import PlannedFile, PlannedInsert, RestoreOptions, RestorePlan, make_plan
from backscroll.changes.change_log import ChangeLog
from backscroll.changes.files import file_hash
from backscroll.errors import RestoreError, ToolRunningError
from backscroll.model.backup import ProgressCallback, RestoreResult
from backscroll.model.change import ChangePlan, FileChange
from backscroll.readers.sqlite import Database
from backscroll.readers.temp_folder import TempFolder
from backscroll.sources import named, names
from backscroll.sources.capabilities import Backup

_CHANGING_ACTIONS = ("create", "replace", "insert")
_LOG_SUFFIXES = ("-wal", "-journal")
_EMPTY_HASH = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256 of no bytes
_CONNECTION_BYTE = 128  # UNIX_SHM_DMS in SQLite
_LAYOUTS = {"linux": "hhqqi4x", "darwin": "qqihh"}  # struct flock


def plan_restore(
    backup: Path,
    options: RestoreOptions,
    progress: ProgressCallback | None = None,
    *,
    with_running: bool = False,
) -> RestoreResult:
    """Return what `restore_backup` would do. Raises the same errors.

    ``with_running`` returns a running process in ``blocked_by`` instead of raising `ToolRunningError`.
    """
    parent = options.archive_folder
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with BackupReader(backup) as reader, TempFolder(parent) as folder:
        plan = _plan(reader, options, folder, progress)
        try:
            _check_processes(plan)
        except ToolRunningError as error:
            if not with_running:
                raise
            return replace(_result(plan), blocked_by=error.reason)
        return _result(plan)


def restore_backup(
    backup: Path,
    options: RestoreOptions,
    change_log: ChangeLog,
    *,
    progress: ProgressCallback | None = None,
) -> RestoreResult:
    """Restore the valid files of a backup. What exists and differs is kept unless ``force`` is set.

    Raises `InvalidBackupError`, `RestoreError`, `ToolRunningError` or `ChangeConflictError`; then nothing is
    changed.
    """
    change_log.recover()
    parent = options.archive_folder
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with BackupReader(backup) as reader, TempFolder(parent) as folder:
        plan = _plan(reader, options, folder, progress)
        _check_processes(plan)
        result = _result(plan)
        if not result.files_restored:
            return result
        try:
            change = change_log.apply(_change_plan(backup, plan, folder))
        except FileDamagedError as error:
            raise RestoreError(f"{backup} changed while it was read: {error}.", backup) from error
    changed = _changed(plan)
    _set_times(changed)
    if any(one.file.kind == "archive" for one in changed):
        shutil.rmtree(options.archive_folder / "index", ignore_errors=True)  # of the former archive
    return replace(result, change_id=change.id)


def _plan(
    reader: BackupReader, options: RestoreOptions, folder: Path, progress: ProgressCallback | None
) -> RestorePlan:
    reader.check_bases()
    return make_plan(reader, options, folder, progress)


def _result(plan: RestorePlan) -> RestoreResult:
    results = plan.results
    changed = {file.path for file in results if file.action in _CHANGING_ACTIONS}
    sessions = {id_ for one in _changed(plan) for id_ in one.file.session_ids}
    for insert in plan.inserts:
        found = [one for one in insert.plan.results if one.action in _CHANGING_ACTIONS]
        inserted = {one.session_id for one in found if one.session_id is not None}
        # A created file and lines of a log contain all selected sessions of the root.
        sessions |= insert.session_ids & inserted if inserted or not found else insert.session_ids
    return RestoreResult(
        files=results,
        files_restored=len(changed),
        sessions_restored=len(sessions),
        warnings=plan.warnings,
    )


def _changed(plan: RestorePlan) -> list[PlannedFile]:
    return [one for one in plan.files if one.action in ("create", "replace")]


def _check_processes(plan: RestorePlan) -> None:
    """Raise `ToolRunningError` if a process has open what would be changed."""
    _check_file_processes(_changed(plan))
    _check_insert_processes(plan.inserts)


def _check_file_processes(changed: Iterable[PlannedFile]) -> None:
    changed = list(changed)
    session_ids: dict[tuple[str, Path], set[str]] = {}
    for one in changed:
        if one.source:
            session_ids.setdefault((one.source, one.root), set()).update(one.file.session_ids)
    for (name, root), ids in session_ids.items():
        _check_tool(name, root, frozenset(ids))
    for one in changed:
        pid = _process_holding(one.target) if one.file.kind != "file" else None
        if pid is None and one.source and len(one.file.session_ids) == 1:
            processes = named(one.source).processes()
            pid = processes.open_process(one.root, one.file.session_ids[0]) if processes is not None else None
        _refuse(pid, one.target)


def _check_insert_processes(inserts: Iterable[PlannedInsert]) -> None:
    for one in inserts:
        if one.plan.files or one.plan.lines or one.plan.rows:
            _check_tool(one.source, one.root, one.session_ids)
            for database in {row.database for row in one.plan.rows}:
                _refuse(_process_holding(database), database)


def _check_tool(name: str, root: Path, session_ids: frozenset[str]) -> None:
    writer = named(name).writer()
    for process in writer.blocking_processes(root, session_ids) if writer is not None else ():
        raise ToolRunningError(process.reason, process.pid)


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


def _refuse(pid: int | None, path: Path) -> None:
    if pid is not None:
        raise ToolRunningError(f"Process {pid} has {path} open. Close that program, then restore again.", pid)


def _change_plan(backup: Path, plan: RestorePlan, folder: Path) -> ChangePlan:
    changed, inserts = _changed(plan), plan.inserts
    sessions = {f"{one.source}:{id_}" for one in changed for id_ in one.file.session_ids}
    sessions |= {f"{one.source}:{id_}" for one in inserts for id_ in one.session_ids}
    return ChangePlan(
        what=f"Restore {backup.name}",
        sessions=tuple(sorted(sessions)),
        files=(*_changes(changed, folder), *(file for one in inserts for file in one.plan.files)),
        lines=tuple(line for one in inserts for line in one.plan.lines),
        rows=tuple(row for one in inserts for row in one.plan.rows),
    )


def _changes(changed: Iterable[PlannedFile], folder: Path) -> Iterator[FileChange]:
    for number, one in enumerate(changed):
        if one.file.kind != "file":
            yield from _emptied_logs(one.target)
        content: Callable[[], Iterable[bytes]] = one.content
        if one.file.kind == "database" and one.action == "replace":
            content = _with_current_secrets(one, folder / f"{number}.db")
        yield FileChange(
            path=one.target,
            content=content,
            before=one.current_hash,
            size=one.file.size,
            label=one.file.kind,
            # Every command adds to the archive. Undo of the tools' files must not depend on it.
            is_left_if_changed=one.file.kind == "archive",
        )


def _emptied_logs(database: Path) -> Iterator[FileChange]:
    """Empty the log and the journal of a database before it is replaced: they belong to the old file."""
    for suffix in _LOG_SUFFIXES:
        path = database.with_name(database.name + suffix)
        if (before := file_hash(path)) not in (None, _EMPTY_HASH):
            yield FileChange(path=path, content=lambda: (), before=before, label="log")


def _with_current_secrets(one: PlannedFile, copy: Path) -> Callable[[], Iterable[bytes]]:
    """Write a restored database to a private file, with the credentials of the one that it replaces."""
    source_backup = named(one.source).backup()
    assert source_backup is not None
    copy.touch(mode=0o600)
    with copy.open("wb") as file:
        for block in one.content():
            file.write(block)
    try:
        with (
            closing(sqlite3.connect(copy, isolation_level=None)) as restored,
            Database(one.target) as current,
        ):
            restored.text_factory = bytes
            (mode,) = restored.execute("pragma journal_mode").fetchone()
            restored.execute("pragma journal_mode = delete")
            current.read(lambda connection: _copy_secrets(source_backup, connection, restored))
            if mode == b"wal":
                restored.execute("pragma journal_mode = wal")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise RestoreError(
            f"The logins in {one.target} cannot be read: {error}. Move the file away and restore again.",
            one.target,
        ) from error
    return lambda: _blocks(copy)


def _copy_secrets(source_backup: Backup, current: sqlite3.Connection, restored: sqlite3.Connection) -> None:
    restored.execute("begin")
    try:
        source_backup.copy_secrets(current, restored)
    except BaseException:
        restored.execute("rollback")
        raise
    restored.execute("commit")


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1024 * 1024):
            yield block


def _set_times(changed: Iterable[PlannedFile]) -> None:
    """Set the original modification times. Tools with a retention period delete old files by this time."""
    retained = {name for name in names() if named(name).retention() is not None}
    for one in changed:
        if one.source not in retained:
            with suppress(OSError):
                os.utime(one.target, ns=(one.file.modified_ns, one.file.modified_ns))
