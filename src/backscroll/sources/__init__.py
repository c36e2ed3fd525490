"""One room per source. Reading is read-only by construction."""

from backscroll.errors import UsageError
from backscroll.sources.base import Source

__all__ = ["NAMES", "Source", "named"]

NAMES = ("claude-code", "cursor", "cursor-cli")


def named(name: str) -> Source:
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
