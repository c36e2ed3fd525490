"""Restore sessions that their tool has deleted, from the archive or from the archive in a backup."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.changes.change_log import ChangeLog
from backscroll.changes.plan_check import check_plan
from backscroll.errors import (
    BackscrollError,
    ChangeConflictError,
    DatabaseLockedError,
    DatabaseUnreadableError,
    DataNotFoundError,
    DestinationError,
    RestoreError,
    ToolRunningError,
    TransferError,
    UnknownStoreVersionError,
)
from backscroll.model.backup import RestoredFile, RestoredSession, SessionAction
from backscroll.model.change import ChangePlan
from backscroll.model.session import SessionSummary
from backscroll.model.stream import RawRow
from backscroll.model.text import pluralize
from backscroll.model.transfer import (
    ArchivedRows,
    MigrateError,
    PlannedSession,
    RefusedSession,
    RestoreSessionResult,
    RestoreSessionsPlan,
    RestoreSessionsResult,
    SessionPlan,
)
from backscroll.sources import named
from backscroll.sources.capabilities import RestorePlanner, SessionWriter
from backscroll.sources.session_file_changes import differs
from backscroll.stores.stores import check_processes
from backscroll.transfer.migrate import Progress, error_code
from backscroll.transfer.safety import changed_paths, content_of, read_contents
from backscroll.transfer.stored_sessions import archived_session, writer_of, written_paths

if TYPE_CHECKING:  # `resume` needs nothing of a backup
    from backscroll.backup.restore import BackupRestore


def plan_restore(archive: Archive, summary: SessionSummary, roots: Collection[Path]) -> PlannedSession:
    """Plan to write a session back to its tool's store. The plan is empty if nothing is missing.

    Raises `ToolRunningError`, `ChangeConflictError`, `DataNotFoundError`, `UnknownStoreVersionError`, or
    `TransferError` if the store is below none of the roots.
    """
    ((_, found),), _ = _plan_each(archive, [summary], roots)
    if isinstance(found, BackscrollError):
        raise found
    return found


def plan_restores(
    archive: Archive,
    summaries: Iterable[SessionSummary],
    roots: Collection[Path],
    check: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> RestoreSessionsPlan:
    """Plan to write several sessions back with one change. One that is refused does not prevent the others.

    ``check`` raises an error if a session, by its ref, must not be changed now. ``progress`` receives the
    number of sessions done, and of all.
    """
    found, changes = _plan_each(archive, list(summaries), roots, check, progress)
    added: list[PlannedSession] = []
    kept: list[SessionSummary] = []
    refused: list[RefusedSession] = []
    for summary, one in found:
        if isinstance(one, BackscrollError):
            refused.append(RefusedSession(summary, MigrateError(summary.id, error_code(one), str(one))))
        elif one.plan.changes.is_empty:
            kept.append(summary)
        else:
            added.append(one)
    what = f"Restore {added[0].session.ref if len(added) == 1 else pluralize(len(added), 'session')}"
    return RestoreSessionsPlan(
        changes=replace(changes, what=what, sessions=tuple(one.session.ref for one in added)),
        added=tuple(added),
        kept=tuple(kept),
        refused=tuple(refused),
        roots=tuple(roots),
    )


def _plan_each(
    archive: Archive,
    summaries: Sequence[SessionSummary],
    roots: Collection[Path],
    check: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> tuple[list[tuple[SessionSummary, PlannedSession | BackscrollError]], ChangePlan]:
    """Return each session with its plan or the reason why it is refused, and the changes for all."""
    found: list[tuple[SessionSummary, PlannedSession | BackscrollError]] = []
    planners: dict[tuple[str, Path], RestorePlanner] = {}
    with ExitStack() as stack:
        for number, summary in enumerate(summaries):
            if progress is not None:
                progress(number, len(summaries))
            try:
                if check is not None:
                    check(summary.ref)
                writer, session = writer_of(summary), archived_session(archive, summary, roots)
                if not session.root.is_dir():
                    raise DataNotFoundError(
                        f"{session.root} does not exist. Start the tool once, then try again.", session.root
                    )
                planner = planners.get((summary.source, session.root))
                if planner is None:
                    ids = [one.id for one in summaries if one.source == summary.source]
                    is_free = not writer.blocking_processes(session.root, ids)  # 50 ms: not for each session
                    planner = writer.restore_planner(
                        session.root, partial(_check, None if is_free else writer, session.root)
                    )
                    planners[summary.source, session.root] = planner
                    stack.callback(planner.close)
                found.append((summary, PlannedSession(summary, planner.add(session), session.root)))
            except BackscrollError as error:
                found.append((summary, error))
        return found, _joined(planner.changes() for planner in planners.values())


def _check(writer: SessionWriter | None, root: Path, plan: SessionPlan) -> None:
    """Raise an error if a session cannot be restored now. ``writer`` finds processes that hold it."""
    check_plan(plan.changes)
    if writer is not None and not plan.changes.is_empty:
        check_processes(writer, root, [plan.session_id])


def _joined(plans: Iterable[ChangePlan]) -> ChangePlan:
    parts = list(plans)
    return ChangePlan(
        what="",
        files=tuple(file for one in parts for file in one.files),
        lines=tuple(line for one in parts for line in one.lines),
        rows=tuple(row for one in parts for row in one.rows),
        tables=tuple(table for one in parts for table in one.tables),
    )


def apply_restore(archive: Archive, log: ChangeLog, planned: PlannedSession) -> RestoreSessionResult:
    """Apply a plan and read the result back. If it is not as archived, the change is undone."""
    summary, plan = planned.session, planned.plan.changes
    if plan.is_empty:
        return RestoreSessionResult(summary.ref, (), 0, None)
    change = log.apply(plan)
    if errors := _read_back(archive, [planned]):
        log.undo(change.id)
        raise errors[0]
    return RestoreSessionResult(summary.ref, _created(plan), len(plan.rows), change)


def apply_restores(archive: Archive, log: ChangeLog, plan: RestoreSessionsPlan) -> RestoreSessionsResult:
    """Apply a plan and read the result back.

    If some sessions are not as archived, the change is undone and the others are restored.
    """
    refused = list(plan.refused)
    while plan.added:
        change = log.apply(plan.changes)
        errors = {error.session_id: error for error in _read_back(archive, plan.added)}
        if not errors:
            return RestoreSessionsResult(
                restored=tuple(one.session.ref for one in plan.added),
                kept=tuple(one.ref for one in plan.kept),
                errors=tuple(one.error for one in refused),
                files=_created(plan.changes),
                row_count=len(plan.changes.rows),
                change=change,
            )
        log.undo(change.id)
        summaries = [one.session for one in plan.added]
        refused += [
            RefusedSession(one, MigrateError(one.id, errors[one.id].code, str(errors[one.id])))
            for one in summaries
            if one.id in errors
        ]
        plan = plan_restores(archive, [one for one in summaries if one.id not in errors], plan.roots)
        refused += plan.refused
    return RestoreSessionsResult(
        kept=tuple(one.ref for one in plan.kept), errors=tuple(one.error for one in refused)
    )


def _created(plan: ChangePlan) -> tuple[str, ...]:
    return tuple(str(file.path) for file in plan.files if file.content is not None)


def _read_back(archive: Archive, sessions: Sequence[PlannedSession]) -> list[TransferError]:
    """Return an error for each session that is not in its store as it is in the archive."""
    errors: list[TransferError] = []
    by_store: dict[tuple[str, Path], list[PlannedSession]] = {}
    for one in sessions:
        by_store.setdefault((one.session.source, one.root), []).append(one)
    for (source_name, root), stored in by_store.items():
        paths = {one.session.id: changed_paths(one.plan.changes) for one in stored}
        contents = read_contents(named(source_name), root, paths)
        for one in stored:
            summary = one.session
            new_paths = written_paths(archive, summary)
            expected = content_of(
                message
                for message in archive.messages.of_session(summary)
                if message.is_active
                and message.kind is None
                and new_paths.get(message.origin.path, message.origin.path) in paths[summary.id]
            )
            if missing := expected - contents[summary.id]:
                text = (
                    f"{len(missing)} messages of {summary.ref} could not be read back. Nothing was changed."
                )
                errors.append(TransferError(text, summary.id, "read-back"))
    return errors


class BackupSession(Struct, frozen=True):
    """A session of a backup, and what a restore does with it."""

    summary: SessionSummary
    outcome: RestoredSession
    root: Path
    changes: ChangePlan = ChangePlan(what="")

    def files(self) -> Iterator[RestoredFile]:
        """Yield what the plan does with each file and database."""
        yield from _restored_files(self.changes, self.summary.id)


def plan_backup_session(restore: "BackupRestore", summary: SessionSummary) -> BackupSession:
    """Plan to add one session of a backup to its tool's store, from the backup's archive.

    A session that is there with other content, or that cannot be added, differs. Raises `RestoreError` if the
    archive names a folder or file that is not one of the tool.
    """
    archive, options = restore.archive, restore.options
    assert archive is not None
    writer = writer_of(summary)
    try:
        session = archived_session(archive, summary)
    except DataNotFoundError as error:
        return _outcome(summary, "kept", str(error))
    root = session.root
    if not options.is_trusted(root):
        raise RestoreError(
            f"{root} is not a folder of {summary.source} on this machine.",
            root,
            hint=f"{options.map_hint(str(root))} Or pass --root {summary.source}={root}.",
        )
    paths = {Path(one.path) for one in session.files} | {Path(one.path) for one in session.rows}
    if paths and paths <= restore.created:
        is_new = any(one.target in paths and one.action != "unchanged" for one in restore.plan.files)
        return _outcome(summary, "added" if is_new else "kept", root=root)
    relocated = [
        ArchivedRows(one.path, one.key, partial(_relocated, restore, summary.source, root, one))
        for one in session.rows
    ]
    session = replace(session, rows=tuple(relocated), creates_store=True)
    try:
        plan = writer.plan_restore(session, is_replacing=options.prefer == "backup").changes
        changes = _without(plan, restore.created)
        _check_owned(changes, summary.source, root)
        check_plan(changes)
    except DatabaseLockedError:
        raise
    except (
        ChangeConflictError,
        UnknownStoreVersionError,
        DataNotFoundError,
        DatabaseUnreadableError,
        DestinationError,
    ) as error:
        return _outcome(summary, "differing", str(error), root)
    if not changes.is_empty:
        return BackupSession(summary, RestoredSession(summary.ref, "added"), root, changes)
    if any(differs(file) for file in session.files if Path(file.path) not in restore.created):
        return _outcome(summary, "differing", "the session exists with other content", root)
    return _outcome(summary, "kept", root=root)


def apply_backup_session(
    restore: "BackupRestore", log: ChangeLog, planned: BackupSession, batch: str
) -> BackupSession:
    """Plan a session again and apply the plan: earlier sessions changed lists that contain several."""
    assert restore.archive is not None
    try:
        current = plan_backup_session(restore, planned.summary)
        if current.changes.is_empty:
            return planned if current.outcome.action == "kept" else current
        changes = replace(current.changes, batch=batch)
        session = PlannedSession(planned.summary, SessionPlan(changes, planned.summary.id), current.root)
        apply_restore(restore.archive, log, session)
    except (ToolRunningError, BackscrollError) as error:
        return _outcome(planned.summary, "differing", str(error), planned.root)
    return current


def check_backup_processes(sessions: Sequence[BackupSession]) -> None:
    """Raise `ToolRunningError` if a process holds what would be changed."""
    from backscroll.backup.restore import check_database  # `resume` needs nothing of a backup

    ids: dict[tuple[str, Path], list[str]] = {}
    for one in sessions:
        if not one.changes.is_empty:
            ids.setdefault((one.summary.source, one.root), []).append(one.summary.id)
    for (source, root), found in ids.items():
        writer = named(source).writer()
        if writer is not None:
            check_processes(writer, root, found)
    for database in {row.database: None for one in sessions for row in one.changes.rows}:
        check_database(database)


def _outcome(
    summary: SessionSummary, action: SessionAction, reason: str | None = None, root: Path = Path()
) -> BackupSession:
    return BackupSession(summary, RestoredSession(summary.ref, action, reason), root)


def _relocated(restore: "BackupRestore", source: str, root: Path, rows: ArchivedRows) -> Iterator[RawRow]:
    for row in rows.rows():
        yield restore.relocated_row(source, root, row)


def _without(plan: ChangePlan, created: frozenset[Path]) -> ChangePlan:
    """Return a plan without the files that the restore writes byte for byte, and their rows."""
    return replace(
        plan,
        files=tuple(file for file in plan.files if file.path not in created),
        lines=tuple(line for line in plan.lines if line.path not in created),
        rows=tuple(row for row in plan.rows if row.database not in created),
        tables=tuple(table for table in plan.tables if table.database not in created),
    )


def _check_owned(plan: ChangePlan, source: str, root: Path) -> None:
    """Raise `RestoreError` if a plan touches what is not part of the history of the tool.

    The archive of a backup may come from anyone.
    """
    backup = named(source).backup()
    paths = {change.path for change in plan.files}
    paths |= {line.path for line in plan.lines}
    paths |= {row.database for row in plan.rows}
    for path in sorted(paths, key=str):
        is_below = path.is_relative_to(root) and ".." not in path.parts
        if backup is None or not is_below or not backup.is_history_path(path.relative_to(root).as_posix()):
            raise RestoreError(f"{path} is not part of the history of {source}.", path)


def _restored_files(changes: ChangePlan, session_id: str) -> Iterator[RestoredFile]:
    for file in changes.files:
        yield RestoredFile(str(file.path), file.action, file.size, session_id=session_id)  # type: ignore[arg-type]
    for path in dict.fromkeys(line.path for line in changes.lines):
        count = sum(line.path == path for line in changes.lines)
        yield RestoredFile(str(path), "insert", 0, session_id=session_id, row_count=count)
    for database in dict.fromkeys(row.database for row in changes.rows):
        count = sum(row.database == database for row in changes.rows)
        yield RestoredFile(str(database), "insert", 0, session_id=session_id, row_count=count)
