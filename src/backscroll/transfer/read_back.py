"""Read the result of a change with the source's reader, and compare it with what was there before."""

from collections.abc import Iterable
from pathlib import Path

from backscroll.model import Message, Unit
from backscroll.model.safekeeping.changes import ChangePlan
from backscroll.sources import Source
from backscroll.sources.protocols import PathLookup, close

__all__ = ["Content", "changed_paths", "content_of", "read_content"]

_COMPARED_ROLES = ("user", "assistant", "thinking", "tool")
Content = set[tuple[str, str, str]]  # role, text, tool


def content_of(messages: Iterable[Message]) -> Content:
    """Return what the messages say. Ids, folders and times are not compared.

    A set, because some tools store a session twice: in a database and as a transcript.
    """
    return {
        (message.role, message.content, message.tool.name if message.tool is not None else "")
        for message in messages
        if message.role in _COMPARED_ROLES and message.kind != "queued"  # not copied with a session
    }


def read_content(source: Source, root: Path, session_id: str, paths: Iterable[str]) -> Content:
    """Read a session and its subagents from the store."""
    units = list(_units(source, root, session_id, set(paths)))
    try:
        return content_of(item for unit in units for item in source.read(unit) if isinstance(item, Message))
    finally:
        close(source)


def _units(source: Source, root: Path, session_id: str, paths: set[str]) -> Iterable[Unit]:
    found = source.units_at(root, paths) if isinstance(source, PathLookup) else None
    units = found if found is not None else source.units(root)
    return [unit for unit in units if unit.session_id == session_id or (unit.path in paths and not unit.key)]


def changed_paths(plan: ChangePlan) -> set[str]:
    """Return the files and databases that exist after a change and were changed by it."""
    files = {str(change.path) for change in plan.files if change.content is not None}
    return files | {str(row.database) for row in plan.rows}
