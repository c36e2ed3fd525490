"""Sessions: summary, content and filter; changes while the tools write.

The docstring of `Closing` says what a new stored field of a session needs.
"""

from datetime import datetime
from typing import Annotated, Generic, Literal, TypeVar, get_args

from msgspec import Struct

from backscroll.model.message import Message, Time

T = TypeVar("T")

Completeness = Literal["complete", "partial", "lossy"]
CostSource = Literal["reported", "estimated"]


class Note(Struct, frozen=True, gc=False):
    """Note of the user on a session."""

    number: int  # from 1 within the session; used to edit and delete it
    text: str
    written_at: Time
    edited_at: Time | None = None


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
    created_at: Time | None
    updated_at: Time | None
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
    cost_usd: float | None = None  # with subagents; null without token counts or a price
    cost_source: CostSource | None = None  # by the tool, or from the price table
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
    """Position of a page."""

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
    total_duration_ms: int | None  # as the tool reports it, or from the first message to the last
    total_tokens: int | None
    total_tool_use_count: int  # as the tool reports it, or the calls on the active branch


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


class FilterText(Struct, frozen=True):
    """How the interfaces describe a filter."""

    help: str
    of_messages: str = ""  # the help text where messages are searched or counted, if it differs
    label: str = ""  # on a page; default: the name
    facet: str = ""  # the field of `SessionFacets` with its values or its count
    is_for_assistants: bool = False  # also an argument of MCP tools; each costs tokens in every request
    hint: str = ""  # for assistants


class Filter(Struct, frozen=True, kw_only=True):
    """Conditions that listed sessions meet. Every field is optional.

    A field with a text is a filter of every interface: an option of the command line, a parameter of the web
    API, a link on a page, a filter of the query syntax. `backscroll.filters.FILTERS` lists them.
    """

    source: Annotated[
        str | None, FilterText("Only sessions from this source.", facet="sources", is_for_assistants=True)
    ] = None
    title: str | None = None  # all of its words are in the title or, without one, in the first prompt
    workspace: Annotated[  # may contain *
        str | None,
        FilterText(
            "Only this workspace: its path, its name, the end of its path or, if remote, its host.",
            facet="workspaces",
            is_for_assistants=True,
            hint="Pass the current folder to stay in this project.",
        ),
    ] = None
    since: Annotated[
        datetime | None,
        FilterText(
            "Only sessions active on or after this date. Dates: 2026-10-03, 2026-10, yesterday or 7d.",
            "Only messages on or after this date. Dates: 2026-10-03, 2026-10, yesterday or 7d.",
            is_for_assistants=True,
        ),
    ] = None
    until: Annotated[  # exclusive
        datetime | None,
        FilterText(
            "Only sessions started on or before this date.",
            "Only messages on or before this date.",
            is_for_assistants=True,
        ),
    ] = None
    branch: Annotated[  # may contain *; case-insensitive
        str | None,
        FilterText(
            "Only sessions started on this git branch.", "Only messages on this git branch.", facet="branches"
        ),
    ] = None
    model: Annotated[  # may contain *; case-insensitive; without * any part of the name
        str | None,
        FilterText(
            "Only sessions that used a model with this text in its name.",
            "Only messages from models with this text in their name.",
            facet="models",
        ),
    ] = None
    has_edits: Annotated[
        bool, FilterText("Only sessions that changed files.", label="With edits", facet="edited")
    ] = False
    is_gone: Annotated[
        bool | None,
        FilterText("Only sessions that the tool has deleted.", label="Deleted by the tool", facet="gone"),
    ] = None
    tags: Annotated[  # all of them; each may contain *
        tuple[str, ...], FilterText("Only sessions with this tag.", facet="tags")
    ] = ()
    is_starred: Annotated[bool, FilterText("Only starred sessions.", facet="starred")] = False
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
