"""Plans of the CLI's sessions, as the transfer package uses them."""

from collections.abc import Collection
from pathlib import Path

from backscroll.errors import DataNotFoundError, TransferError
from backscroll.model.safekeeping.changes import ChangePlan, FileChange
from backscroll.model.safekeeping.transfer import ArchivedSession, BlockingProcess, SessionPlan, StoredSession
from backscroll.readers.processes import find_processes, may_use_folder
from backscroll.sources.cursor_cli.writing.store_files import (
    copy_files,
    has_store,
    move_files,
    restore_files,
    subagent_folders,
)
from backscroll.sources.cursor_cli.writing.transcript_files import find_transcript_files, move_transcripts

__all__ = ["blocking_processes", "plan_companion_move", "plan_copy", "plan_move", "plan_restore"]

_PROGRAMS = ("cursor-agent",)


def plan_restore(session: ArchivedSession) -> SessionPlan:
    """Plan to restore a store. Raises `DataNotFoundError` if no rows are archived."""
    if not session.rows:
        raise DataNotFoundError(f"The archive has no store of {session.ref}.", session.root)
    files: list[FileChange] = []
    for rows in session.rows:
        name = Path(rows.path).relative_to(session.root).as_posix()
        files += restore_files(session.root, name, rows.rows())
    return SessionPlan(_plan(f"Restore {session.ref}", session.ref, files), session.id)


def plan_move(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to move a session to another working directory, which is recorded only once."""
    _check_resumable(session)
    return SessionPlan(plan_companion_move(session, target), session.id)


def plan_companion_move(session: StoredSession, target: Path) -> ChangePlan:
    """Plan to move the store and the transcripts of a session, as far as they exist."""
    files: list[FileChange] = []
    if has_store(session.root, session.id):
        files += move_files(session.root, session.id, target, subagent_folders(session))
    files += move_transcripts(session.root, session.id, session.folder, target)
    return _plan(f"Move {session.ref} to {target}", session.ref, files)


def plan_copy(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to copy a session to another working directory, under a new id. It has no transcript yet."""
    _check_resumable(session)
    files, new_id = copy_files(session.root, session.id, target, subagent_folders(session))
    return SessionPlan(_plan(f"Copy {session.ref} to {target}", session.ref, files), new_id)


def blocking_processes(root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
    """Return the running agents. A process does not show which session it has open."""
    return [
        BlockingProcess(pid, f"cursor-agent is running (process {pid}). Close it and try again.")
        for pid in find_processes(_PROGRAMS)
        if may_use_folder(pid, root)
    ]


def _check_resumable(session: StoredSession) -> None:
    """Raise `TransferError` if a session has only a transcript, which ``cursor-agent`` cannot resume."""
    if has_store(session.root, session.id) or not find_transcript_files(session.root, session.id):
        return
    raise TransferError(
        f"{session.ref} has only a transcript, which cursor-agent cannot resume in any folder."
        " It was left where it is.",
        session.id,
        "transcript-only",
        hint=f"Run 'backscroll handoff {session.id}' to continue its work in a new session.",
    )


def _plan(what: str, ref: str, files: list[FileChange]) -> ChangePlan:
    return ChangePlan(what=what, sessions=(ref,), files=tuple(files))
