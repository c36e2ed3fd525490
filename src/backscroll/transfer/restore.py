"""Restore sessions that their tool has deleted, from the archive or from the archive in a backup."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.changes.change_log import ChangeLog
from backscroll.changes.plan_check import check_plan
from backscroll.errors import DataNotFoundError, RestoreError, TransferError
from backscroll.model.backup import RestoredFile, RestoreResult
from backscroll.model.session import SessionSummary
from backscroll.model.transfer import PlannedSession, RestoreSessionResult
from backscroll.sources import named
from backscroll.stores.stores import check_processes
from backscroll.transfer.safety import changed_paths, content_of, read_content
from backscroll.transfer.stored_sessions import archived_session, writer_of

if TYPE_CHECKING:  # `resume` needs nothing of a backup
    from backscroll.backup.restore_plan import RestoreOptions


def plan_restore(archive: Archive, summary: SessionSummary, roots: Collection[Path]) -> PlannedSession:
    """Plan to write a session back to its tool's store. The plan is empty if nothing is missing.

    Raises `ToolRunningError`, `ChangeConflictError`, `DataNotFoundError`, `UnknownStoreVersionError`, or
    `TransferError` if the store is below none of the roots.
    """
    writer = writer_of(summary)
    session = archived_session(archive, summary, roots)
    if not session.root.is_dir():
        raise DataNotFoundError(
            f"{session.root} does not exist. Start the tool once, then try again.", session.root
        )
    plan = writer.plan_restore(session)
    check_plan(plan.changes)
    if not plan.changes.is_empty:
        check_processes(writer, session.root, [summary.id])
    return PlannedSession(summary, plan, session.root)


def apply_restore(archive: Archive, log: ChangeLog, planned: PlannedSession) -> RestoreSessionResult:
    """Apply a plan and read the result back. If it is not as archived, the change is undone."""
    summary, plan = planned.session, planned.plan.changes
    if plan.is_empty:
        return RestoreSessionResult(summary.ref, (), 0, None)
    check_processes(writer_of(summary), planned.root, [summary.id])
    change = log.apply(plan)
    paths = changed_paths(plan)
    found = read_content(named(summary.source), planned.root, summary.id, paths)
    expected = content_of(
        message
        for message in archive.messages.of_session(summary)
        if message.is_active and message.kind is None and message.origin.path in paths
    )
    if missing := expected - found:
        log.undo(change.id)
        raise TransferError(
            f"{len(missing)} messages of {summary.ref} could not be read back. Nothing was changed.",
            summary.id,
            "read-back",
        )
    files = tuple(str(file.path) for file in plan.files if file.content is not None)
    return RestoreSessionResult(summary.ref, files, len(plan.rows), change)


def restore_archived(
    archive: Archive,
    sessions: Iterable[SessionSummary],
    options: "RestoreOptions",
    result: RestoreResult,
    log: ChangeLog | None,
) -> RestoreResult:
    """Write sessions of a backup's archive back to their tools' stores. Return the result with them.

    Without a change log, nothing is changed. Raises the errors of `plan_restore` and `RestoreError`.
    """
    planned = [_plan_archived(archive, session, options) for session in sessions]
    for one in planned:
        files = tuple(_restored_files(one))
        change = apply_restore(archive, log, one).change if log is not None else None
        result = replace(
            result,
            files=(*result.files, *files),
            files_restored=result.files_restored + len(files),
            sessions_restored=result.sessions_restored + bool(files),
            change_id=change.id if change is not None else result.change_id,
        )
    return result


def _plan_archived(archive: Archive, session: SessionSummary, options: "RestoreOptions") -> PlannedSession:
    if options.maps:
        raise RestoreError(
            f"{session.ref} is only in the archive of the backup, which --map does not support.",
            session.ref,
            hint="Restore the whole backup with --map. Then run 'backscroll restore-session'.",
        )
    root = archived_session(archive, session).root
    if not options.is_trusted(root):
        raise RestoreError(
            f"{root} is not a folder of {session.source} on this machine.",
            root,
            hint=f"Pass --root {session.source}={root}.",
        )
    return plan_restore(archive, session, [root])


def _restored_files(planned: PlannedSession) -> Iterator[RestoredFile]:
    """Return what the plan does with each file and database."""
    changes = planned.plan.changes
    for file in changes.files:
        yield RestoredFile(str(file.path), file.action, file.size, session_id=planned.session.id)  # type: ignore[arg-type]
    for path in dict.fromkeys(line.path for line in changes.lines):
        count = sum(line.path == path for line in changes.lines)
        yield RestoredFile(str(path), "insert", 0, session_id=planned.session.id, row_count=count)
    for database in dict.fromkeys(row.database for row in changes.rows):
        count = sum(row.database == database for row in changes.rows)
        yield RestoredFile(str(database), "insert", 0, session_id=planned.session.id, row_count=count)
