"""A session in a list, and pages of anything."""

from datetime import datetime
from typing import Generic, TypeVar

from msgspec import Struct

from backscroll.model.annotation import Note
from backscroll.model.message import Message
from backscroll.model.stream import Completeness

__all__ = ["PaginatedResult", "Pagination", "Session", "SessionSummary"]

T = TypeVar("T")


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
