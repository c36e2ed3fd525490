"""What prevents a change: running tools and unsuitable folders."""

import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from backscroll.changes import ChangeLog
from backscroll.errors import DestinationError, ToolRunningError, TransferError
from backscroll.model import SessionSummary
from backscroll.model.safekeeping.changes import Change
from backscroll.model.safekeeping.transfer import StoredSession
from backscroll.sources.capabilities import SessionWriter
from backscroll.sources.capability_lookup import capability
from backscroll.sources.protocols import Source

__all__ = [
    "check_processes",
    "check_target",
    "open_change_log",
    "recent_activity",
    "target_path",
    "writable_roots",
]

_RECENT_SECONDS = 600


def check_processes(writer: SessionWriter, root: Path, session_ids: Collection[str]) -> None:
    """Raise `ToolRunningError` if a process holds what would be changed."""
    blocking = writer.blocking_processes(root, session_ids)
    if blocking:
        raise ToolRunningError(blocking[0].reason, blocking[0].pid)


def writable_roots(
    summary: SessionSummary, source_name: str, stored_below: Iterable[str], roots: Collection[Path]
) -> set[str]:
    """Return the roots that are read now, of those below which a session is stored.

    The archive also knows roots of earlier syncs, such as the original of a copied home folder. Raises
    `TransferError` if the session is stored only below such roots.
    """
    read_now = {os.path.realpath(root) for root in roots}
    known = list(stored_below)
    found = {root for root in known if os.path.realpath(root) in read_now}
    if known and not found:
        raise TransferError(
            f"{summary.ref} is stored below {known[0]}, which is not among the folders that are read now.",
            summary.id,
            "other-root",
            hint=f"Pass --root {source_name}={known[0]} to change it there.",
        )
    return found


def open_change_log(folder: Path, roots: Callable[[], Iterable[tuple[Source, Path]]]) -> ChangeLog:
    """Return the log in a folder. No change is undone while a process holds what it concerns."""
    return ChangeLog(folder, lambda change: _check_change(change, roots()))


def _check_change(change: Change, roots: Iterable[tuple[Source, Path]]) -> None:
    """Raise `ToolRunningError` if a process holds a file or database of a change."""
    ids: dict[str, list[str]] = {}
    for ref in change.sessions:
        source_name, _, session_id = ref.partition(":")
        ids.setdefault(source_name, []).append(session_id)
    for source, root in roots:
        is_changed = any(Path(path).is_relative_to(root) for path in change.paths)
        writer = capability(source, SessionWriter) if is_changed else None
        if writer is not None:
            check_processes(writer, root, ids.get(source.name, []))


def target_path(target: Path) -> Path:
    """Return the real path of the target folder. Raises `DestinationError` if it is not a folder."""
    path = Path(os.path.realpath(target.expanduser()))
    if not path.is_dir():
        reason = "is not a folder" if path.exists() else "does not exist. Create it first"
        raise DestinationError(f"{path} {reason}.", path)
    return path


def check_target(session: StoredSession, target: Path) -> None:
    """Raise `TransferError` if the target is the session's folder, or inside it."""
    if session.folder is None:
        return
    folder = Path(os.path.realpath(session.folder))
    if folder == target:
        raise TransferError(f"{session.ref} is in {target} already.", session.id, "same-folder")
    if folder in target.parents:
        raise TransferError(
            f"{target} is inside {folder}, the folder of {session.ref}. Choose a folder outside it.",
            session.id,
            "target-inside-source",
        )


def recent_activity(session: StoredSession) -> str | None:
    """Return a warning if the session was written to within the last ten minutes."""
    times = [Path(path).stat().st_mtime for path in session.paths if Path(path).is_file()]
    age = time.time() - max(times, default=0)
    if age >= _RECENT_SECONDS:
        return None
    minutes = max(1, round(age / 60))
    unit = "minute" if minutes == 1 else "minutes"
    return f"{session.ref} was used {minutes} {unit} ago. Make sure that it is closed."
