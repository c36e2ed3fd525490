"""Restore sessions that only the archive in a backup contains: their tool had deleted them before."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from backscroll.archive import Archive
from backscroll.backup.restore import RestoreOptions
from backscroll.changes import ChangeLog
from backscroll.errors import RestoreError
from backscroll.model import SessionSummary
from backscroll.model.safekeeping.backup import RestoredFile, RestoreResult
from backscroll.model.safekeeping.transfer import PlannedSession
from backscroll.transfer.restore import apply_restore, plan_restore
from backscroll.transfer.stored_sessions import archived_session

__all__ = ["restore_archived"]


def restore_archived(
    archive: Archive,
    sessions: Iterable[SessionSummary],
    options: RestoreOptions,
    result: RestoreResult,
    log: ChangeLog | None,
) -> RestoreResult:
    """Write sessions of a backup's archive back to their tools' stores. Return the result with them.

    Without a change log, nothing is changed. Raises the errors of `plan_restore` and `RestoreError`.
    """
    planned = [_plan(archive, session, options) for session in sessions]
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


def _plan(archive: Archive, session: SessionSummary, options: RestoreOptions) -> PlannedSession:
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
