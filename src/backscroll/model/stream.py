"""What a source tells, in the order it tells it.

Reading a unit gives a stream of items. A session opens, its messages follow as
they lie in the file, answers to tool calls come when the file has them, and a
closing says what is known only at the end. One `RecordCounts` ends the stream of every
unit. Nothing in the stream needs the whole session in memory; `fold` puts one
together for those who want it.

    Opening  (Message | Answer | Arrival | Spent | Naming | Link | Problem)*  Closing   any number of times
    Tally                                                            once, last
"""

from datetime import datetime
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from backscroll.model.message import (
    Attachment,
    Decision,
    Edit,
    Message,
    Origin,
    Status,
    TimeSource,
    TokenUsage,
)
from backscroll.model.problem import Problem
from backscroll.model.workspace import Workspace

__all__ = [
    "STORES",
    "Agent",
    "Checkpoint",
    "Closing",
    "ClosingUpdate",
    "Completeness",
    "Item",
    "Opening",
    "RawRow",
    "RecordCounts",
    "Replacement",
    "SubagentLink",
    "TitleHint",
    "ToolResult",
    "TrackedFile",
    "UsageReport",
    "Visibility",
]

Completeness = Literal["complete", "partial", "lossy"]

# Why a session is or is not among those a person would call theirs.
Visibility = Literal[
    "listed",
    "archived",  # real, but put away by the user
    "draft",  # nothing was ever sent
    "placeholder",  # the tool's own empty slot
    "deleted",  # deleted in the tool, which kept a marker
    "ghost",  # named in an index, with nothing to read
    "hidden",  # the tool's own background work
]


# The stores a session can be told by, from the fullest account to the poorest. One id found in several is one
# session, and its content is that of the first.
STORES = (
    "lines",  # a line per record
    "bubbles",  # a database row per message
    "inline",  # all messages in one row
    "chat",  # the old chat panel
    "graph",  # what the model was shown, beside lost messages
    "store",  # a database per session
    "acp",  # the same, driven by another program
    "transcript",  # a text copy
    "search",  # the body of a search index
    "prompts",  # only what the user typed
    "notes",  # what another program knows of it: what it is called, and whether it was put away
)


class Checkpoint(Struct, frozen=True):
    """How far a unit has been read, and what must be remembered to go on from there."""

    offset: int
    line: int
    state: bytes = b""


class Opening(Struct, frozen=True, kw_only=True):
    """A session begins: who it is."""

    source: str
    id: str  # the tool's own id, unchanged
    store: str  # which of STORES tells of it
    agent_id: str | None = None  # set when it is a subagent's conversation
    parent_id: str | None = None  # the session that started the subagent

    @property
    def ref(self) -> str:
        """The name people type: ``claude-code:0f3c9a…``."""
        return f"{self.source}:{self.id}"


class ToolResult(Struct, frozen=True, kw_only=True, gc=False):
    """What came of a tool call said earlier, in this reading or in one before it."""

    tool_call_id: str
    result: str
    origin: Origin
    record_id: str | None = None  # the tool's own id of the record that answered
    status: Status = "completed"
    decision: Decision | None = None
    timestamp: datetime | None = None
    edits: tuple[Edit, ...] = ()
    attachments: tuple[Attachment, ...] = ()


class Replacement(Struct, frozen=True):
    """What was told too early, in this reading or in one before it: the message said next takes its place."""

    message_id: str  # of the message that told it


class UsageReport(Struct, frozen=True):
    """What a response cost, said by a record that gave no message."""

    response_id: str
    usage: TokenUsage
    origin: Origin


class TitleHint(Struct, frozen=True):
    """A title for whichever session owns that message; it may lie in another file."""

    message_id: str
    title: str
    origin: Origin


class SubagentLink(Struct, frozen=True, kw_only=True):
    """A sign that a tool call started a subagent. The smaller the strength, the better the sign."""

    agent_id: str
    tool_call_id: str
    evidence: str
    strength: int


class Agent(Struct, frozen=True, kw_only=True):
    """A subagent: a conversation that a session started."""

    agent_id: str
    parent_session_id: str | None
    tool_call_id: str | None = None
    parent_agent_id: str | None = None
    prompt: str | None = None
    model: str | None = None
    kind: str | None = None  # the tool's name for this sort of agent
    description: str | None = None
    total_duration_ms: int | None = None
    total_tokens: int | None = None
    total_tool_use_count: int | None = None
    started_at: datetime | None = None
    is_hidden: bool = False  # the tool's own background work, or a replay of its parent


class TrackedFile(Struct, frozen=True, gc=False):
    """A file of which the tool kept versions before editing it."""

    path: str
    version: int | None = None
    backup: str | None = None  # the name of the kept copy; None when the file did not exist
    at: datetime | None = None


class Closing(Struct, frozen=True, kw_only=True):
    """What is known of a session once its unit has been read to the end."""

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
    is_unlinked: bool = False  # a subagent that is hidden unless a tool call turns out to have started it
    agents: tuple[Agent, ...] = ()  # subagents told of in this unit
    child_ids: tuple[str, ...] = ()  # subagents that have a unit of their own
    abandoned: tuple[str, ...] = ()  # ids of messages off the branch that the tool shows
    tracked_files: tuple[TrackedFile, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)


class ClosingUpdate(Closing, frozen=True, kw_only=True):
    """What is known of a session from its unit's end alone; what was told of it before stands."""

    def applied_to(self, before: Closing) -> Closing:
        """What is known of it altogether."""
        return replace(
            before,
            workspace=before.workspace or self.workspace,
            created_at=min(_known(before.created_at, self.created_at), default=None),
            created_at_source=before.created_at_source or self.created_at_source,
            updated_at=max(_known(before.updated_at, self.updated_at), default=None),
        )


def _known(*moments: datetime | None) -> list[datetime]:
    return [moment for moment in moments if moment is not None]


class RecordCounts(Struct, kw_only=True):
    """The account of one unit: every record counted once, as one of three."""

    records: int = 0
    parsed: int = 0  # gave a message, or completed one
    ignored: int = 0  # known, and carrying no message
    problems: int = 0  # could not be read, or is of no known kind
    kinds: dict[str, int] = field(default_factory=dict)  # records by type or key family
    unknown: dict[str, int] = field(default_factory=dict)  # types, families and versions never met before
    checkpoint: Checkpoint | None = None  # where the next sync continues
    file_content: bytes = b""  # of a file that was read at once, so that the archive need not read it again

    def count(self, kind: str, verdict: Literal["parsed", "ignored", "problems"], number: int = 1) -> None:
        """Count a record, once."""
        self.records += number
        self.kinds[kind] = self.kinds.get(kind, 0) + number
        match verdict:
            case "parsed":
                self.parsed += number
            case "ignored":
                self.ignored += number
            case "problems":
                self.problems += number

    def plus(self, later: "RecordCounts") -> "RecordCounts":
        """The account of a unit that was read on, from the end of this one."""
        return RecordCounts(
            records=self.records + later.records,
            parsed=self.parsed + later.parsed,
            ignored=self.ignored + later.ignored,
            problems=self.problems + later.problems,
            kinds=_added(self.kinds, later.kinds),
            unknown=_added(self.unknown, later.unknown),
            checkpoint=later.checkpoint,
        )

    def add_unknown(self, name: str, number: int = 1) -> None:
        """Note a type, family or version that nobody here knows."""
        self.unknown[name] = self.unknown.get(name, 0) + number


Item: TypeAlias = (
    Opening
    | Message
    | ToolResult
    | Replacement
    | UsageReport
    | TitleHint
    | SubagentLink
    | Closing
    | Problem
    | RecordCounts
)


def _added(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


class RawRow(Struct, frozen=True, kw_only=True, gc=False):
    """One row of the few tables that sessions are made of, or a small file that says what they belong to.

    Where a row holds entries of many sessions, only this session's is told: ``part`` names it as
    ``field[]/id`` in a list, as ``field`` in an object. Keys to encrypted things are never in it.
    """

    table: str  # empty when it is a file
    key: str
    value: bytes | None  # None when the tool emptied the row; the columns as JSON where there are several
    path: str = ""  # below the root, where it does not lie in the unit's own file
    part: str = ""
    is_shared: bool = False  # other sessions may have the same
    is_text: bool = True  # how SQLite has it: as text or as a blob
    blanked: tuple[str, ...] = ()  # fields whose values were left out
    volatile: tuple[str, ...] = ()  # fields that change all the time without anything being lost; "" is all
