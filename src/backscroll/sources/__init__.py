"""One package per source. Reading is read-only by construction."""

from __future__ import annotations

from importlib import import_module

from backscroll.errors import UsageError
from backscroll.sources.protocols import Source

__all__ = ["SOURCES", "Source", "named", "names"]

# Registry of the source classes by name. A class is imported on first use.
SOURCES = {
    "claude-code": "backscroll.sources.claude_code:ClaudeCode",
    "cursor": "backscroll.sources.cursor:Cursor",
    "cursor-cli": "backscroll.sources.cursor_cli:CursorCli",
}


def names() -> tuple[str, ...]:
    """Return the names of all sources, in the order in which they are read."""
    return tuple(SOURCES)


def named(name: str) -> Source:
    """Return a new instance of a source. Raises `UsageError` if no source has this name."""
    if name not in SOURCES:
        raise UsageError(f"There is no source {name!r}. The sources are {', '.join(SOURCES)}.")
    module, _, class_name = SOURCES[name].partition(":")
    source: Source = getattr(import_module(module), class_name)()
    return source
