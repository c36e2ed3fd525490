"""Messages told to others on their way into the archive."""

from collections.abc import Sequence
from typing import Protocol

from backscroll.model import Message

__all__ = ["Listener"]


class Listener(Protocol):
    """Somebody who wants the messages while they are in hand."""

    def begin(self, account: int) -> None:
        """A new account begins, and the one before it has ended."""

    def say(self, first: int, messages: Sequence[Message]) -> None:
        """Messages of it, from a position on, as they are kept."""

    def amend(self) -> None:
        """A message of it, said before, is another one now."""
