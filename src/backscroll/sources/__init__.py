"""One package per source. Reading is read-only by construction.

protocols        the interface of a source, and optional interfaces for reading
capabilities     what a source can do beyond reading: backup, restore, resume, hooks
claude_code      Claude Code
cursor           Cursor, the editor
cursor_cli       Cursor's command line
cursor_graph     the conversation format that both Cursor sources read
session_files    base of a source with a file per session: listing, and what the archive keeps
session_file_changes  its backups, and how its sessions are restored, moved and copied
json_edits       replace members of JSON texts; all other bytes stay as they are
hook_events      what the hook events of all tools have in common
secret_fields    blank secrets in database values
restore_rows     write archived rows to databases and files
"""

from __future__ import annotations

from backscroll.errors import UsageError
from backscroll.model.store import declare
from backscroll.sources.claude_code import ClaudeCode
from backscroll.sources.cursor import Cursor
from backscroll.sources.cursor_cli import CursorCli
from backscroll.sources.protocols import Source as Source

SOURCES: dict[str, type[Source]] = {}  # by name


def register(source: type[Source]) -> None:
    """Add a source, and the kinds of stores and units that it declares."""
    SOURCES[source.name] = source
    declare(source.stores, source.unit_kinds)


# In the order in which they are read. Of two stores with the same content, the first one has precedence.
register(ClaudeCode)
register(Cursor)
register(CursorCli)


def names() -> tuple[str, ...]:
    """Return the names of all sources, in the order in which they are read."""
    return tuple(SOURCES)


def named(name: str) -> Source:
    """Return a new instance of a source. Raises `UsageError` if no source has this name."""
    if name not in SOURCES:
        raise UsageError(f"There is no source {name!r}. The sources are {', '.join(SOURCES)}.")
    return SOURCES[name]()
