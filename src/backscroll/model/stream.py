"""The stream that a source returns for a unit.

It has messages, results of tool calls, problems and counts. At its end are facts about the session. The
functions below merge tool calls with their results, and with the same call in a later record.
"""

from collections.abc import Iterable
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
    ToolCall,
)
from backscroll.model.problem import Problem
from backscroll.model.session import Completeness
from backscroll.model.workspace import Workspace


class Checkpoint(Struct, frozen=True):
    """Position up to which a unit was read, and the reader's state there."""

    offset: int
    line: int
    state: bytes = b""


class Opening(Struct, frozen=True, kw_only=True):
    """Start of a session."""

    source: str
    id: str  # the tool's id, unchanged
    store: str  # name of a `StoreKind` of the source
    agent_id: str | None = None  # set for a subagent's conversation
    parent_id: str | None = None  # the session that started the subagent

    @property
    def ref(self) -> str:
        """Return the name that users type: ``claude-code:0f3c9a…``."""
        return f"{self.source}:{self.id}"


class ToolResult(Struct, frozen=True, kw_only=True, gc=False):
    """Result of a tool call that was emitted before, in this read or an earlier one."""

    tool_call_id: str
    result: str
    origin: Origin
    record_id: str | None = None  # the tool's id of the record with the result
    status: Status = "completed"
    decision: Decision | None = None
    timestamp: datetime | None = None
    edits: tuple[Edit, ...] = ()
    attachments: tuple[Attachment, ...] = ()


class Replacement(Struct, frozen=True):
    """Announces that the next message replaces one that this read or an earlier one emitted too early."""

    message_id: str  # of the message to remove


class UsageReport(Struct, frozen=True):
    """Usage of a response, from a record without a message."""

    response_id: str
    usage: TokenUsage
    origin: Origin
    model: str | None = None
    timestamp: datetime | None = None
    agent_id: str | None = None  # subagent that is inlined in the session


class ReportedState(Struct, frozen=True):
    """Usage of a session up to one time, as the tool reports it."""

    started_at: datetime | None  # when the tool began to count; the same for a session and its forks
    at: datetime | None
    models: dict[str | None, tuple[int, float]]  # tokens and dollars; None: not attributed to a model


class ReportedTotals(Struct, frozen=True):
    """All states of a session, in order. Each includes the states before it. Replaces earlier totals."""

    states: tuple[ReportedState, ...]


class TitleHint(Struct, frozen=True):
    """Title of the session that contains a message, which may be in another file."""

    message_id: str
    title: str
    origin: Origin


class SubagentLink(Struct, frozen=True, kw_only=True):
    """Evidence that a tool call started a subagent. A lower strength value is better evidence."""

    agent_id: str
    tool_call_id: str
    evidence: str
    strength: int


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
    """Facts about a session, known at the end of its unit.

    A stored fact takes this way: a field here, or a key of ``metadata``; `merged_closing` in
    ``archive/derive/fragments.py`` chooses between fragments; ``archive/derive/session_rows.py`` writes its
    column, which a migration adds; ``archive/query/sessions.py`` reads it into `SessionSummary`.
    """

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


class ClosingUpdate(Closing, frozen=True, kw_only=True):
    """Facts from the new part of a unit. Earlier facts stay valid."""

    def applied_to(self, before: Closing) -> Closing:
        """Return the earlier closing with these facts applied."""
        return replace(
            before,
            workspace=before.workspace or self.workspace,
            created_at=min(_known(before.created_at, self.created_at), default=None),
            created_at_source=before.created_at_source or self.created_at_source,
            updated_at=max(_known(before.updated_at, self.updated_at), default=None),
        )


def _known(*timestamps: datetime | None) -> list[datetime]:
    return [timestamp for timestamp in timestamps if timestamp is not None]


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


class RecordCounts(Struct, kw_only=True):
    """Counts of a unit's records. Every record is counted once, with one of three verdicts."""

    records: int = 0
    parsed: int = 0  # yielded or completed a message
    ignored: int = 0  # known type without a message
    problems: int = 0  # unreadable or of unknown type
    kinds: dict[str, int] = field(default_factory=dict)  # records by type or key family
    unknown: dict[str, int] = field(default_factory=dict)  # unknown types, families and versions
    checkpoint: Checkpoint | None = None  # where the next sync continues
    file_content: bytes = b""  # of a file that was read at once, so that the archive need not read it again

    def count(self, kind: str, verdict: Literal["parsed", "ignored", "problems"], count: int = 1) -> None:
        """Count records of one type."""
        self.records += count
        self.kinds[kind] = self.kinds.get(kind, 0) + count
        match verdict:
            case "parsed":
                self.parsed += count
            case "ignored":
                self.ignored += count
            case "problems":
                self.problems += count

    def plus(self, later: "RecordCounts") -> "RecordCounts":
        """Return the sum of these counts and those of a later part of the unit."""
        return RecordCounts(
            records=self.records + later.records,
            parsed=self.parsed + later.parsed,
            ignored=self.ignored + later.ignored,
            problems=self.problems + later.problems,
            kinds=_sum_counts(self.kinds, later.kinds),
            unknown=_sum_counts(self.unknown, later.unknown),
            checkpoint=later.checkpoint,
        )

    def add_unknown(self, name: str, count: int = 1) -> None:
        """Count an unknown type, family or version."""
        self.unknown[name] = self.unknown.get(name, 0) + count


def _sum_counts(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


Item: TypeAlias = (
    Opening
    | Message
    | ToolResult
    | Replacement
    | UsageReport
    | ReportedTotals
    | TitleHint
    | SubagentLink
    | Closing
    | Problem
    | RecordCounts
)


class RawRow(Struct, frozen=True, kw_only=True, gc=False):
    """A database row of a session, or a small file with its metadata.

    If a row has entries of several sessions, only the entry of this session is included: ``part`` is
    ``field[]/id`` in a list and ``field`` in an object. Encryption keys are never included.
    """

    table: str  # empty for a file
    key: str
    value: bytes | None  # None if the tool emptied the row; several columns as JSON
    path: str = ""  # below the root, if it is not in the unit's own file
    part: str = ""
    is_shared: bool = False  # other sessions may have the same row
    is_text: bool = True  # stored by SQLite as text, not as a blob
    blanked: tuple[str, ...] = ()  # fields with removed values
    volatile: tuple[str, ...] = ()  # fields that change often and need not be kept; "" means all


ORPHAN_RESULT = "answer without a call"  # kind of a message; stored in archives


def is_same_response(first: Message, second: Message) -> bool:
    """Return whether a repeated call is the same one. Some gateways reuse an id in several responses."""
    return first.response_id is not None and first.response_id == second.response_id


def merge_repeated_call(repeated: Message, known: Message) -> Message:
    """Return a call that was written again, with the result it already had."""
    if repeated.tool is None or known.tool is None or known.tool.result is None:
        return repeated
    tool = replace(
        repeated.tool,
        result=known.tool.result,
        status=known.tool.status,
        decision=known.tool.decision,
        edits=known.tool.edits,
    )
    attachments = tuple(dict.fromkeys(repeated.attachments + known.attachments))
    return replace(repeated, tool=tool, attachments=attachments)


def message_for_orphan_result(result: ToolResult) -> Message:
    """Return a message for a result without a call. The call may follow later."""
    record, call = result.record_id, result.tool_call_id
    return Message(
        id=f"{record}.{call}" if record is not None else f"answer-{call}",
        role="tool",
        content="",
        origin=result.origin,
        kind=ORPHAN_RESULT,
        timestamp=result.timestamp,
        timestamp_source="stored" if result.timestamp else None,
        tool=with_result(ToolCall(result.tool_call_id, "unknown"), result),
        attachments=result.attachments,
    )


def with_result(tool: ToolCall, result: ToolResult) -> ToolCall:
    """Return a call with its result. A failed call loses its edits; a rejected call keeps them.

    A later result of a cancelled call can withdraw its decision.
    """
    decided = None if result.status == "cancelled" else tool.decision
    proposed = tool.edits if result.status == "completed" or result.decision == "rejected" else ()
    return ToolCall(
        tool.id,
        tool.name,
        tool.params,
        result.result,
        result.status,
        result.decision or decided,
        result.edits or proposed,
    )


def calls_by_id(items: Iterable[Item]) -> dict[str, ToolCall]:
    """Return the tool calls of a stream with their results. Of calls with the same id the last one counts."""
    calls: dict[str, Message] = {}
    for item in items:
        match item:
            case Message(tool=ToolCall(id=str(id_))) if id_:
                known = calls.get(id_)
                if known is not None and known.id != item.id and is_same_response(known, item):
                    continue
                if known is not None and (known.kind == ORPHAN_RESULT or known.id == item.id):
                    item = merge_repeated_call(item, known)
                calls[id_] = item
            case ToolResult(tool_call_id=id_):
                known = calls.get(id_)
                if known is None or known.tool is None:
                    calls[id_] = message_for_orphan_result(item)
                else:
                    calls[id_] = replace(known, tool=with_result(known.tool, item))
    return {id_: message.tool for id_, message in calls.items() if message.tool is not None}
