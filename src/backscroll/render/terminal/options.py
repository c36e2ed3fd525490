"""How a session is to be shown."""

from collections.abc import Collection
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from backscroll.render.terminal.style import Style

__all__ = ["MAX_PLAIN_LINE_CHARS", "TranscriptOptions"]

MAX_PLAIN_LINE_CHARS = 300  # characters of what is told in one line, where no terminal says how many fit
_NARROWEST = 20


class TranscriptOptions(Struct, frozen=True, kw_only=True, dict=True):
    """How much is shown, and on what."""

    width: int | None = None  # columns of the terminal; without one no line is broken
    is_coloured: bool = False
    is_full: bool = False  # nothing folded, nothing cut
    only: Collection[str] = ()  # roles; all when empty
    unfolded: int | None = None  # the position of a message of the session that is not folded
    with_agents: bool = False  # whether the messages of subagents follow

    @cached_property
    def style(self) -> Style:
        return Style(is_coloured=self.is_coloured)

    @property
    def room(self) -> int:
        """How long a line may be that is cut where it ends."""
        return self.width or MAX_PLAIN_LINE_CHARS

    def narrowed(self, columns: int) -> "TranscriptOptions":
        """The same beside a margin."""
        if self.width is None:
            return self
        return replace(self, width=max(self.width - columns, _NARROWEST))
