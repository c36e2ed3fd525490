"""Plans of Cursor sessions, as the transfer package uses them."""

from collections.abc import Collection
from pathlib import Path

from backscroll.errors import DataNotFoundError
from backscroll.model.safekeeping.changes import ChangePlan
from backscroll.model.safekeeping.transfer import ArchivedSession, BlockingProcess, SessionPlan, StoredSession
from backscroll.readers.processes import find_processes, may_use_folder
from backscroll.sources.cursor.user_data import UserData
from backscroll.sources.cursor.writing import copy, move, restore
from backscroll.sources.cursor.writing.lock_files import lock_holders, running_reason
from backscroll.sources.cursor.writing.store_edits import StoreEdits

__all__ = ["blocking_processes", "plan_copy", "plan_move", "plan_restore"]

_PROGRAMS = ("Cursor", "Cursor Nightly", "Cursor Helper", "cursor.appimage")
_KEY_PREFIXES = ("tab:", "composer:")  # of units whose conversation is in a list


def plan_restore(session: ArchivedSession) -> SessionPlan:
    """Plan to restore a session and its subagents. Raises `DataNotFoundError` if no rows are archived."""
    if not session.rows:
        raise DataNotFoundError(f"The archive has no rows of {session.ref}.", session.root)
    user_data = UserData(session.root)
    try:
        units = [(_session_id(rows.key), Path(rows.path), rows.rows()) for rows in session.rows]
        edits = restore.plan_restore(user_data, units)
        return SessionPlan(_plan(f"Restore {session.ref}", session.ref, edits), session.id)
    finally:
        user_data.close()


def plan_move(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to move a session and its subagents to another folder."""
    user_data = UserData(session.root)
    try:
        folder = None if keep_cwd else session.folder
        edits = move.plan_move(user_data, session.id, folder=folder, target=target)
        return SessionPlan(_plan(f"Move {session.ref} to {target}", session.ref, edits), session.id)
    finally:
        user_data.close()


def plan_copy(session: StoredSession, target: Path, *, keep_cwd: bool) -> SessionPlan:
    """Plan to copy a session and its subagents to another folder, under new ids."""
    user_data = UserData(session.root)
    try:
        folder = None if keep_cwd else session.folder
        edits, new_ids = copy.plan_copy(user_data, session.id, folder=folder, target=target)
        changes = _plan(f"Copy {session.ref} to {target}", session.ref, edits)
        return SessionPlan(changes, new_ids[0], tuple(new_ids[1:]))
    finally:
        user_data.close()


def blocking_processes(root: Path, session_ids: Collection[str]) -> list[BlockingProcess]:
    """Return the running editors: they overwrite the session lists when they exit."""
    pids = [pid for pid in find_processes(_PROGRAMS) if may_use_folder(pid, root)]
    found = [BlockingProcess(pid, running_reason(pid)) for pid in pids]
    return found or lock_holders(root)


def _plan(what: str, ref: str, edits: StoreEdits) -> ChangePlan:
    return ChangePlan(what=what, sessions=(ref,), files=edits.files(), rows=edits.rows())


def _session_id(key: str) -> str:
    for prefix in _KEY_PREFIXES:
        key = key.removeprefix(prefix)
    return key
