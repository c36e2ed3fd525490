"""The record of changes of the tools' stores. Few commands load it."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from backscroll.changes.change_log import ChangeLog
from backscroll.errors import ToolRunningError
from backscroll.model.change import Change
from backscroll.sources import Source
from backscroll.sources.capabilities import SessionWriter


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
        writer = source.writer() if is_changed else None
        if writer is not None:
            check_processes(writer, root, ids.get(source.name, []))


def check_processes(writer: SessionWriter, root: Path, session_ids: Collection[str]) -> None:
    """Raise `ToolRunningError` if a process holds what would be changed."""
    blocking = writer.blocking_processes(root, session_ids)
    if blocking:
        raise ToolRunningError(blocking[0].reason, blocking[0].pid)
