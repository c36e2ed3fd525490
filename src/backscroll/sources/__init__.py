"""One room per source. Reading is read-only by construction."""

from typing import TYPE_CHECKING, Any

from backscroll.errors import UsageError
from backscroll.model.source_names import SOURCE_NAMES

if TYPE_CHECKING:
    from backscroll.sources.protocols import Source

__all__ = ["NAMES", "Source", "named"]

NAMES = SOURCE_NAMES


def __getattr__(name: str) -> Any:
    if name != "Source":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from backscroll.sources.protocols import Source  # not loaded for those who only need the names

    return Source


def named(name: str) -> "Source":
    """A source by its name; only the one asked for is loaded."""
    match name:
        case "claude-code":
            from backscroll.sources.claude_code import ClaudeCode

            return ClaudeCode()
        case "cursor":
            from backscroll.sources.cursor import Cursor

            return Cursor()
        case "cursor-cli":
            from backscroll.sources.cursor_cli import CursorCli

            return CursorCli()
    raise UsageError(f"there is no source {name!r}; the sources are {', '.join(NAMES)}")
