"""Move and copy sessions to another folder."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from msgspec.structs import replace

from backscroll.archive.archive import Archive
from backscroll.changes.change_log import ChangeLog
from backscroll.changes.plan_check import check_plan
from backscroll.errors import (
    BackscrollError,
    ChangeConflictError,
    DatabaseLockedError,
    DataNotFoundError,
    DestinationError,
    SessionNotFoundError,
    ToolRunningError,
    TransferError,
    UnknownStoreVersionError,
)
from backscroll.model.change import ChangePlan, FolderMove
from backscroll.model.session import SessionSummary
from backscroll.model.transfer import (
    BlockingProcess,
    MigratedSession,
    MigrateError,
    MigrateResult,
    MigrationPlan,
    Mode,
    PlannedSession,
    SessionPlan,
    StoredSession,
    UnchangedSession,
)
from backscroll.sources import named
from backscroll.stores.stores import check_processes
from backscroll.transfer.safety import (
    changed_paths,
    check_target,
    read_content,
    recent_activity,
)
from backscroll.transfer.stored_sessions import companions, remote_error, stored_session, writer_of

Progress = Callable[[int, int], None]  # done, total

_CODES: dict[type[BackscrollError], str] = {
    ToolRunningError: "tool-running",
    ChangeConflictError: "conflict",
    DatabaseLockedError: "locked",
    UnknownStoreVersionError: "unknown-version",
    SessionNotFoundError: "not-found",
    DataNotFoundError: "not-archived",
    DestinationError: "destination",
}
_TEMPORARY_CODES = frozenset({"tool-running", "locked"})  # the user closes the tool and runs it again


def plan_migration(
    archive: Archive,
    summaries: Iterable[SessionSummary],
    target: Path,
    mode: Mode,
    *,
    roots: Collection[Path],
    keep_cwd: bool,
    with_running: bool = False,
    check: Callable[[str], None] | None = None,
    archived: Collection[str] = (),
    command: str = "",
    done: Mapping[str, str] = {},
) -> MigrationPlan:
    """Plan every session on its own. One that cannot be moved or copied does not prevent the others.

    Only sessions below one of the roots are planned.
    ``with_running`` also plans sessions that a running process has open: the plan can be applied when it has
    ended. ``check`` raises an error if a session must not be changed now. ``archived`` are refs of sessions
    that may be moved in the archive, because their tool has deleted them. ``done`` are the new refs of
    sessions that an interrupted run of the same command has moved or copied.
    """
    planned: list[PlannedSession] = []
    unchanged = {ref: UnchangedSession(ref, new_ref) for ref, new_ref in done.items()}
    errors: list[MigrateError] = []
    for summary in summaries:
        if summary.ref in unchanged:
            continue
        try:
            if check is not None:
                check(summary.ref)
            if mode == "move" and summary.is_gone and summary.ref in archived:
                planned.append(_plan_archived(archive, summary, target))
                continue
            stored = stored_session(archive, summary, roots)
            if not with_running:
                check_processes(writer_of(summary), stored.root, [stored.id])
            plan = _plan(archive, stored, summary, target, mode, roots=roots, keep_cwd=keep_cwd)
            check_plan(plan.changes)
            planned.append(PlannedSession(summary, plan, stored.root, stored))
        except BackscrollError as error:
            if mode == "move" and error_code(error) == "same-folder":
                unchanged[summary.ref] = UnchangedSession(summary.ref, summary.ref)
            else:
                errors.append(_failed(summary, error))
    return MigrationPlan(
        mode=mode,
        target=target,
        keep_cwd=keep_cwd,
        roots=tuple(roots),
        sessions=tuple(planned),
        unchanged=tuple(unchanged.values()),
        errors=tuple(errors),
        command=command,
    )


def blocking_processes(plan: MigrationPlan) -> list[BlockingProcess]:
    """Return the running processes that prevent a planned migration."""
    return [
        process
        for planned in plan.sessions
        if (stored := planned.stored) is not None
        for process in writer_of(planned.session).blocking_processes(stored.root, [stored.id])
    ]


def apply_migration(
    archive: Archive, log: ChangeLog, plan: MigrationPlan, progress: Progress | None = None
) -> MigrateResult:
    """Apply the plans one after the other. A session that fails is left as it was.

    ``progress`` receives the number of sessions done, and of all. A second run of an interrupted command
    continues its batch.
    """
    batch = next((one.batch for one in log.open_batch(plan.command)), uuid4().hex[:12])
    done: list[MigratedSession] = []
    errors = list(plan.errors)
    archived = [one for one in plan.sessions if one.plan.changes.moves]
    if archived:
        try:
            done += _apply_archived(log, archived, plan, batch)
        except BackscrollError as error:
            errors += [_failed(one.session, error) for one in archived]
    for number, planned in enumerate(plan.sessions):
        if planned in archived:
            continue
        if progress is not None:
            progress(number, len(plan.sessions))
        try:
            done.append(_apply(archive, log, planned, plan, batch, is_first=not done))
        except BackscrollError as error:
            errors.append(_failed(planned.session, error))
    return MigrateResult(
        success_count=len(done),
        failed_count=len(errors),
        errors=tuple(errors),
        sessions=tuple(done),
        unchanged=plan.unchanged,
    )


def end_migration(log: ChangeLog, plan: MigrationPlan, result: MigrateResult) -> None:
    """Record that a migration is complete, unless a second run can move or copy what failed."""
    if any(error.code in _TEMPORARY_CODES for error in result.errors):
        return
    batches = {one.change.batch for one in result.sessions} | {
        one.batch for one in log.open_batch(plan.command)
    }
    for batch in batches:
        log.end_batch(batch)


def error_code(error: BackscrollError) -> str:
    """Return the stable code of an error."""
    if isinstance(error, TransferError):
        return error.code
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), "failed")


def _failed(summary: SessionSummary, error: BackscrollError) -> MigrateError:
    return MigrateError(summary.id, error_code(error), str(error))


def _plan(
    archive: Archive,
    session: StoredSession,
    summary: SessionSummary,
    target: Path,
    mode: Mode,
    *,
    roots: Collection[Path],
    keep_cwd: bool,
) -> SessionPlan:
    writer = writer_of(summary)
    check_target(session.ref, session.folder, target)
    if mode == "copy":
        plan = writer.plan_copy(session, target, keep_cwd=keep_cwd)
        copies = tuple(f"{summary.source}:{id_}" for id_ in (plan.session_id, *plan.subagent_ids))
        return replace(plan, changes=replace(plan.changes, copies=copies))
    plan = writer.plan_move(session, target, keep_cwd=keep_cwd)
    changes = plan.changes
    for moves, part in companions(archive, summary, roots):
        moved = moves.plan_companion_move(part, target)
        changes = replace(changes, files=(*changes.files, *moved.files))
    if (warning := recent_activity(session)) is not None:
        changes = replace(changes, warnings=(*changes.warnings, warning))
    return replace(plan, changes=changes)


def _plan_archived(archive: Archive, summary: SessionSummary, target: Path) -> PlannedSession:
    """Plan to move a session that only the archive has: a restore then writes it for the new folder."""
    folder = summary.workspace_path
    assert folder is not None
    if archive.originals.resumable(summary).authority:
        raise remote_error(summary)
    check_target(summary.ref, folder, target)
    move = FolderMove(summary.ref, folder, str(target))
    what = f"Move {summary.ref} to {target} in the archive"
    return PlannedSession(
        summary,
        SessionPlan(ChangePlan(what=what, sessions=(summary.ref,), moves=(move,)), summary.id),
        target,
    )


def _apply_archived(
    log: ChangeLog, archived: Sequence[PlannedSession], migration: MigrationPlan, batch: str
) -> list[MigratedSession]:
    """Move sessions in the archive, all in one change."""
    plans = [one.plan.changes for one in archived]
    what = plans[0].what
    if len(plans) > 1:
        what = f"Move {len(plans)} sessions to {migration.target} in the archive"
    change = log.apply(
        ChangePlan(
            what=what,
            sessions=tuple(one.session.ref for one in archived),
            moves=tuple(move for plan in plans for move in plan.moves),
            batch=batch,
            command=migration.command,
        )
    )
    return [MigratedSession(one.session.ref, one.session.ref, change) for one in archived]


def _apply(
    archive: Archive,
    log: ChangeLog,
    planned: PlannedSession,
    migration: MigrationPlan,
    batch: str,
    *,
    is_first: bool,
) -> MigratedSession:
    summary = planned.session
    writer, source = writer_of(summary), named(summary.source)
    session = stored_session(archive, summary, [planned.root])
    expected = read_content(source, session.root, session.id, session.paths)
    check_processes(writer, session.root, [session.id])
    plan = planned.plan
    try:
        change = log.apply(replace(plan.changes, batch=batch, command=migration.command))
    except ChangeConflictError:
        if is_first:
            raise
        # An earlier session of this migration changed a list that contains both.
        plan = _plan(
            archive,
            session,
            summary,
            migration.target,
            migration.mode,
            roots=migration.roots,
            keep_cwd=migration.keep_cwd,
        )
        change = log.apply(replace(plan.changes, batch=batch, command=migration.command))
    found = read_content(source, session.root, plan.session_id, changed_paths(plan.changes))
    if missing := expected - found:
        log.undo(change.id)
        raise TransferError(
            f"{len(missing)} messages of {summary.ref} could not be read back. Nothing was changed.",
            summary.id,
            "read-back",
        )
    return MigratedSession(summary.ref, f"{summary.source}:{plan.session_id}", change)
