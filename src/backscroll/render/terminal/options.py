"""Options for showing a session."""

from collections.abc import Collection
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from backscroll.model import Message
from backscroll.render.terminal.style import Style

__all__ = ["MAX_PLAIN_LINE_CHARS", "TranscriptOptions"]

MAX_PLAIN_LINE_CHARS = 300  # of one-line fields in output without a terminal
_MIN_WIDTH = 20


class TranscriptOptions(Struct, frozen=True, kw_only=True, dict=True):
    """Width, styling and level of detail of a transcript."""

    width: int | None = None  # cells of the terminal; None: lines are not wrapped
    is_colored: bool = False
    is_full: bool = False  # collapse and truncate nothing
    only: Collection[str] = ()  # roles; empty: all. "error" includes failed tool calls
    unfolded: int | None = None  # position of a message that is shown in full
    with_agents: bool = False  # show the messages of subagents

    @cached_property
    def style(self) -> Style:
        return Style(is_colored=self.is_colored)

    def selects(self, message: Message) -> bool:
        """Return whether a message has one of the selected roles."""
        if not self.only or message.role in self.only:
            return True
        return "error" in self.only and message.tool is not None and message.tool.is_error

    @property
    def max_line_width(self) -> int:
        """Cells at which a one-line text is truncated."""
        return self.width or MAX_PLAIN_LINE_CHARS

    def narrowed(self, cells: int) -> "TranscriptOptions":
        """Return the options for text behind a margin."""
        if self.width is None:
            return self
        return replace(self, width=max(self.width - cells, _MIN_WIDTH))
