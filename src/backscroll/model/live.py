"""Changes of sessions while they are being watched."""

from datetime import datetime

from msgspec import Struct

from backscroll.model.message import Message
from backscroll.model.session import SessionSummary

__all__ = ["FollowedMessage", "SessionChange"]


class SessionChange(Struct, frozen=True, kw_only=True):
    """A session that was added, changed or deleted by its tool."""

    at: datetime  # when it was detected
    session: SessionSummary
    added: int  # messages, including subagents; negative if the tool removed some
    is_new: bool  # the session was not listed before
    has_vanished: bool  # from the tool's own store; the archive keeps it


class FollowedMessage(Struct, frozen=True):
    """A new message, or one that changed: a tool result or more text was added."""

    position: int
    message: Message
    before: Message | None = None  # the version returned last
