"""Restore a session that its tool has deleted."""

from collections.abc import Collection
from pathlib import Path

from backscroll.archive import Archive
from backscroll.changes import ChangeLog
from backscroll.errors import DataNotFoundError, TransferError
from backscroll.model import SessionSummary
from backscroll.model.safekeeping.transfer import PlannedSession, RestoreSessionResult
from backscroll.sources import named
from backscroll.transfer.read_back import changed_paths, content_of, read_content
from backscroll.transfer.safety import check_processes
from backscroll.transfer.stored_sessions import archived_session, writer_of

__all__ = ["apply_restore", "plan_restore"]


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
