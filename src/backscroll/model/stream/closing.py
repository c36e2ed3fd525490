"""Facts about a session that are known at the end of its unit."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from backscroll.model.message import TimeSource
from backscroll.model.session import Completeness
from backscroll.model.workspace import Workspace

__all__ = [
    "OWN_TITLES",
    "STORES",
    "Agent",
    "Closing",
    "CopiedLines",
    "TrackedFile",
    "Visibility",
    "best_title",
    "is_titled",
    "title_rank",
]

# Whether a session is in lists by default, and why not.
Visibility = Literal[
    "listed",
    "archived",  # archived by the user
    "draft",  # nothing was sent yet
    "placeholder",  # an empty session created by the tool
    "deleted",  # deleted in the tool, which kept a marker
    "ghost",  # in an index, without content
    "hidden",  # background work of the tool
]


# Stores of sessions, from the most to the least complete. One id found in several stores is one session; its
# content comes from the first one.
STORES = (
    "lines",  # a line per record
    "progress",  # progress lines of a subagent in the file of its parent
    "bubbles",  # a database row per message
    "inline",  # all messages in one row
    "chat",  # the old chat panel
    "graph",  # the model's context; replaces lost messages
    "store",  # a database per session
    "acp",  # the same, used by another editor
    "transcript",  # a text copy
    "search",  # the text in a search index
    "hooks",  # events that hooks recorded
    "prompts",  # only the user's prompts
    "notes",  # metadata of another program: title, archived or not
    "usage",  # only token counts, from hooks
)


class Agent(Struct, frozen=True, kw_only=True):
    """A subagent: a conversation that a session started."""

    agent_id: str
    parent_session_id: str | None
    tool_call_id: str | None = None
    parent_agent_id: str | None = None
    prompt: str | None = None
    model: str | None = None
    kind: str | None = None  # the tool's name for this type of agent
    description: str | None = None
    total_duration_ms: int | None = None
    total_tokens: int | None = None
    total_tool_use_count: int | None = None
    started_at: datetime | None = None
    is_hidden: bool = False  # background work of the tool, or a replay of its parent


class TrackedFile(Struct, frozen=True, gc=False):
    """A file of which the tool stores versions before it edits it."""

    path: str
    version: int | None = None
    backup: str | None = None  # name of the stored copy; None if the file did not exist
    at: datetime | None = None


class CopiedLines(Struct, frozen=True, gc=False):
    """Messages that a resume or fork copied into a unit, identified by their times.

    Usually they have the ids and times of the original messages. Otherwise they share only ids of responses.
    """

    first_at: datetime
    last_at: datetime
    written_at: datetime | None = None  # the copies are newer than this time
    session_id: str | None = None  # the session that they were copied from, if the unit names it
    has_new_ids: bool = False  # and new times


class Closing(Struct, frozen=True, kw_only=True):
    """Facts about a session, known at the end of its unit."""

    title: str | None = None
    title_source: str | None = None
    workspace: Workspace | None = None
    created_at: datetime | None = None
    created_at_source: TimeSource | None = None
    updated_at: datetime | None = None
    git_branch: str | None = None
    version: str | None = None
    completeness: Completeness = "complete"
    reasons: tuple[str, ...] = ()  # why it is not complete
    visibility: Visibility = "listed"
    is_unlinked: bool = False  # a subagent that is hidden unless a link to a tool call is found
    is_discarded: bool = False  # the tool discarded the result; the tokens do not count
    agents: tuple[Agent, ...] = ()  # subagents in this unit
    child_ids: tuple[str, ...] = ()  # subagents with their own unit
    abandoned: tuple[str, ...] = ()  # ids of messages outside the branch that the tool shows
    tracked_files: tuple[TrackedFile, ...] = ()
    copied: tuple[CopiedLines, ...] = ()
    last_record_id: str | None = None  # if the last record has no message; a title may name it
    metadata: dict[str, Any] = field(default_factory=dict)


# Titles that are not replaced by one from another file, highest priority first.
OWN_TITLES = ("custom-title", "desktop-title", "ai-title")


def title_rank(closing: Closing) -> int:
    """Return the priority of a title, 0 is the highest. A first message ranks low, no title last."""
    if not is_titled(closing):
        return len(OWN_TITLES) + (closing.title is None) + 1
    source = closing.title_source
    return OWN_TITLES.index(source) if source in OWN_TITLES else len(OWN_TITLES)


def best_title(closings: Iterable[Closing]) -> Closing | None:
    """Return the closing with the best title; the first one if several are equal."""
    return min(filter(is_titled, closings), key=title_rank, default=None)


def is_titled(closing: Closing) -> bool:
    """Return whether a session has a title other than its first message."""
    return closing.title is not None and closing.title_source != "first message"
