"""Items of the stream that a source returns for a unit.

A session begins with an `Opening`. Its messages follow in file order, tool results where the file has them.
A `Closing` has the facts known only at the end. One `RecordCounts` ends the stream of every unit. No item
needs the whole session in memory.

    (Opening (Message | ToolResult | Replacement | UsageReport | ReportedTotals | TitleHint | SubagentLink
     | Problem)* Closing)*
    RecordCounts
"""

from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from backscroll.model.message import (
    Attachment,
    Decision,
    Edit,
    Message,
    Origin,
    Status,
    TokenUsage,
)
from backscroll.model.problem import Problem
from backscroll.model.stream.closing import Closing

__all__ = [
    "Checkpoint",
    "ClosingUpdate",
    "Item",
    "Opening",
    "RawRow",
    "RecordCounts",
    "Replacement",
    "ReportedState",
    "ReportedTotals",
    "SubagentLink",
    "TitleHint",
    "ToolResult",
    "UsageReport",
]


class Checkpoint(Struct, frozen=True):
    """Position up to which a unit was read, and the reader's state there."""

    offset: int
    line: int
    state: bytes = b""


class Opening(Struct, frozen=True, kw_only=True):
    """Start of a session."""

    source: str
    id: str  # the tool's id, unchanged
    store: str  # one of STORES
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


def _sum_counts(first: dict[str, int], second: dict[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


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
