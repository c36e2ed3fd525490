"""A session in a list, and pages of anything."""

from collections.abc import Iterable
from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct

from backscroll.model.message import Message
from backscroll.model.stream import Closing, Completeness

__all__ = [
    "OWN_TITLES",
    "AgentSession",
    "Note",
    "PaginatedResult",
    "Pagination",
    "Session",
    "SessionSummary",
    "best_title",
    "is_titled",
    "title_rank",
]

T = TypeVar("T")


class Note(Struct, frozen=True, gc=False):
    """Words about a session, with the number that they are edited and deleted by."""

    number: int  # from 1, within the session; never given twice while a later one is there
    text: str
    written_at: datetime
    edited_at: datetime | None = None


class SessionSummary(Struct, frozen=True, kw_only=True, gc=False):
    """What a list shows of a session."""

    ref: str
    id: str  # the tool's own
    index: int | None  # from 1, within the filter it was listed by
    source: str
    platform: str
    title: str | None
    workspace_path: str | None
    workspace_name: str | None
    message_count: int
    created_at: datetime | None
    updated_at: datetime | None
    first_message_preview: str | None
    git_branch: str | None
    models: tuple[str, ...]
    version: str | None
    agent_ids: tuple[str, ...]
    parent_ref: str | None
    interaction_count: int
    acceptance_rate: float | None
    total_tokens: int | None
    total_changes: int
    completeness: Completeness
    is_gone: bool
    # What people have added to it in the archive.
    tags: tuple[str, ...] = ()
    is_starred: bool = False
    notes: tuple[Note, ...] = ()
    original_title: str | None = None  # the tool's own, when the session was renamed here


class Session(Struct, frozen=True):
    """A session with every message of it."""

    summary: SessionSummary
    messages: tuple[Message, ...]


class Pagination(Struct, frozen=True):
    total: int
    limit: int
    offset: int
    has_more: bool


class PaginatedResult(Struct, Generic[T], frozen=True):
    """One page of what was asked for."""

    data: tuple[T, ...]
    pagination: Pagination


class AgentSession(Struct, frozen=True, kw_only=True):
    """A subagent: what it was asked, what it did, what that took."""

    agent_id: str
    parent_session_id: str
    prompt: str | None
    model: str | None
    messages: tuple[Message, ...]
    total_duration_ms: int | None  # from its first message to its last; None when they have no times
    total_tokens: int | None
    total_tool_use_count: int


# Titles that one from another file does not replace, the most deliberate first.
OWN_TITLES = ("custom-title", "desktop-title", "ai-title")


def title_rank(closing: Closing) -> int:
    """How deliberate a session's title is, 0 the most; its first words come late, and no title last."""
    if not is_titled(closing):
        return len(OWN_TITLES) + (closing.title is None) + 1
    source = closing.title_source
    return OWN_TITLES.index(source) if source in OWN_TITLES else len(OWN_TITLES)


def best_title(closings: Iterable[Closing]) -> Closing | None:
    """Of what several accounts say of a session, the one with the title to take; the first when in doubt."""
    return min(filter(is_titled, closings), key=title_rank, default=None)


def is_titled(closing: Closing) -> bool:
    """Whether a session has a title that somebody gave it; its first words are only better than nothing."""
    return closing.title is not None and closing.title_source != "first message"
