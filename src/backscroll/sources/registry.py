"""All sources, in the order in which they are read. A new source is one line here."""

from __future__ import annotations

from backscroll.errors import UsageError
from backscroll.model.store import declare
from backscroll.sources.claude_code import ClaudeCode
from backscroll.sources.cursor import Cursor
from backscroll.sources.cursor_cli import CursorCli
from backscroll.sources.protocols import Source

SOURCES: dict[str, type[Source]] = {}  # by name


def register(source: type[Source]) -> None:
    """Add a source, and the kinds of stores and units that it declares."""
    SOURCES[source.name] = source
    declare(source.stores, source.unit_kinds)


# Of two stores with the same content, the first one has precedence.
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
