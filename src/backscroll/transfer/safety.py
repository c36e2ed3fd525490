"""Checks before and after a change: unsuitable folders, and what can be read back."""

import os
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from backscroll.config import given_path
from backscroll.errors import DestinationError, TransferError, UsageError
from backscroll.model.change import ChangePlan
from backscroll.model.message import Message
from backscroll.model.session import SessionSummary
from backscroll.model.transfer import StoredSession
from backscroll.sources.protocols import PathLookup, Source, close

_RECENT_SECONDS = 600
_COMPARED_ROLES = ("user", "assistant", "thinking", "tool")

Content = set[tuple[str, str, str]]  # role, text, tool


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


def target_path(target: str | os.PathLike[str], tool_folders: Iterable[Path]) -> Path:
    """Return the real path of the target folder.

    Raises `UsageError` if it is invalid or belongs to a tool, and `DestinationError` if it is not a folder.
    """
    path = Path(os.path.realpath(given_path("target folder", target)))
    known = {os.path.realpath(folder) for folder in tool_folders}
    for folder in (path, *path.parents):
        if str(folder) in known:
            raise UsageError(
                f"{path} belongs to a tool, which keeps its own files there. Name another folder."
            )
        if (folder / ".git").exists():  # Cursor has worktrees of projects in its folder
            break
    if not path.is_dir():
        reason = "is not a folder" if path.exists() else "does not exist. Create it first"
        raise DestinationError(f"{path} {reason}.", path)
    return path


def check_target(ref: str, current: str | None, target: Path) -> None:
    """Raise `TransferError` if the target is the current folder of a session, or inside it."""
    if current is None:
        return
    folder, session_id = Path(os.path.realpath(current)), ref.partition(":")[2]
    if folder == target:
        raise TransferError(f"{ref} is in {target} already.", session_id, "same-folder")
    if folder in target.parents:
        raise TransferError(
            f"{target} is inside {folder}, the folder of {ref}. Choose a folder outside it.",
            session_id,
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


def content_of(messages: Iterable[Message]) -> Content:
    """Return what the messages say. Ids, folders and times are not compared.

    A set, because some tools store a session twice: in a database and as a transcript.
    """
    return {
        (message.role, message.content, message.tool.name if message.tool is not None else "")
        for message in messages
        if message.role in _COMPARED_ROLES
    }


def read_content(source: Source, root: Path, session_id: str, paths: Iterable[str]) -> Content:
    """Read a session and its subagents from the store."""
    return read_contents(source, root, {session_id: set(paths)})[session_id]


def read_contents(source: Source, root: Path, paths: Mapping[str, set[str]]) -> dict[str, Content]:
    """Read sessions, by id, and their subagents from the store. ``paths`` are their files and databases."""
    contents: dict[str, Content] = {session_id: set() for session_id in paths}
    owners: dict[str, list[str]] = {}
    for session_id, owned in paths.items():
        for path in owned:
            owners.setdefault(path, []).append(session_id)
    found = source.units_at(root, owners.keys()) if isinstance(source, PathLookup) else None
    try:
        for unit in list(found if found is not None else source.units(root)):
            ids = {*(owners.get(unit.path, ()) if not unit.key else ()), unit.session_id} & paths.keys()
            if ids:
                content = content_of(item for item in source.read(unit) if isinstance(item, Message))
                for session_id in ids:
                    contents[session_id] |= content
        return contents
    finally:
        close(source)


def changed_paths(plan: ChangePlan) -> set[str]:
    """Return the files and databases that exist after a change and were changed by it."""
    files = {str(change.path) for change in plan.files if change.content is not None}
    return files | {str(row.database) for row in plan.rows}
