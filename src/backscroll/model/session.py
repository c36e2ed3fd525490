"""Sessions: summary, content and filter; changes while the tools write."""

from datetime import datetime
from typing import Generic, Literal, TypeVar, get_args

from msgspec import Struct

from backscroll.model.message import Message

__all__ = [
    "SORT_KEYS",
    "AgentSession",
    "Completeness",
    "FacetValue",
    "Filter",
    "FollowedMessage",
    "Note",
    "PaginatedResult",
    "Pagination",
    "Session",
    "SessionChange",
    "SessionFacets",
    "SessionSummary",
    "SortKey",
    "Stretch",
]

T = TypeVar("T")

Completeness = Literal["complete", "partial", "lossy"]


class Note(Struct, frozen=True, gc=False):
    """Note of the user on a session."""

    number: int  # from 1 within the session; used to edit and delete it
    text: str
    written_at: datetime
    edited_at: datetime | None = None


class SessionSummary(Struct, frozen=True, kw_only=True, gc=False):
    """Entry of a session list."""

    ref: str
    id: str  # the tool's id
    index: int | None  # from 1, in the complete list
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
    # Added by the user in the archive.
    tags: tuple[str, ...] = ()
    is_starred: bool = False
    notes: tuple[Note, ...] = ()
    original_title: str | None = None  # the tool's title, if the user renamed the session


class Session(Struct, frozen=True):
    """A session with all messages."""

    summary: SessionSummary
    messages: tuple[Message, ...]


class Pagination(Struct, frozen=True):
    total: int
    limit: int
    offset: int
    has_more: bool


class PaginatedResult(Struct, Generic[T], frozen=True):
    """One page of results."""

    data: tuple[T, ...]
    pagination: Pagination


class AgentSession(Struct, frozen=True, kw_only=True):
    """A subagent with its prompt, messages and totals."""

    agent_id: str
    parent_session_id: str
    prompt: str | None
    model: str | None
    messages: tuple[Message, ...]
    total_duration_ms: int | None  # from the first message to the last; None without timestamps
    total_tokens: int | None
    total_tool_use_count: int


class Stretch(Struct, frozen=True, kw_only=True, gc=False):
    """Consecutive messages of a session, counted for an overview."""

    start: int  # position of the first message
    end: int  # exclusive
    prompts: tuple[int, ...]  # positions of the user's messages on the active branch
    call_count: int
    error_count: int  # errors and failed calls
    lines_added: int
    lines_removed: int
    has_compaction: bool
    at: datetime | None  # the earliest timestamp


# Times and numbers are sorted in descending order, texts in ascending order.
SortKey = Literal["updated", "created", "title", "workspace", "messages", "prompts", "tokens", "lines"]
SORT_KEYS: tuple[SortKey, ...] = get_args(SortKey)


class Filter(Struct, frozen=True, kw_only=True):
    """Conditions that listed sessions meet. Every field is optional."""

    source: str | None = None
    title: str | None = None  # all of its words are in the title or, without one, in the first prompt
    workspace: str | None = None  # a path, a folder name, the end of a path, or a host; may contain *
    since: datetime | None = None
    until: datetime | None = None  # exclusive
    branch: str | None = None  # may contain *; case-insensitive
    model: str | None = None  # may contain *; case-insensitive; without * any part of the name
    has_edits: bool = False
    is_gone: bool | None = None
    tags: tuple[str, ...] = ()  # all of them; each may contain *
    is_starred: bool = False
    with_subagents: bool = False
    with_unlisted: bool = False  # drafts, ghosts, background work of the tools, copies of subagents


class FacetValue(Struct, frozen=True, gc=False):
    """A value of a filter and the number of sessions that it would list."""

    value: str
    label: str  # a shorter form to show
    count: int


class SessionFacets(Struct, frozen=True, kw_only=True):
    """Values of each filter with their session counts, the most frequent first."""

    sources: tuple[FacetValue, ...]
    workspaces: tuple[FacetValue, ...]
    branches: tuple[FacetValue, ...]
    models: tuple[FacetValue, ...]
    tags: tuple[FacetValue, ...]
    edited: int  # sessions that changed files
    gone: int
    starred: int


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
