"""One thing said or done in a session, once no tool's file format is left in it.

Everything here is a value: frozen, comparable, and free of ids that only the
archive needs.
"""

import re
from datetime import datetime
from typing import Any, Literal, TypeVar

from msgspec import Struct

__all__ = [
    "Attachment",
    "Decision",
    "Edit",
    "Hunk",
    "Message",
    "Origin",
    "Role",
    "Status",
    "TimeSource",
    "TokenUsage",
    "ToolCall",
    "is_uuid",
    "record_id_of",
]

Role = Literal["user", "assistant", "thinking", "tool", "error", "system"]
Status = Literal["completed", "pending", "failed", "cancelled"]
Decision = Literal["accepted", "rejected", "modified"]

# Where a time was taken from. "stored" is the tool's own; everything else is inferred from what it names.
TimeSource = Literal[
    "stored",  # written on the record itself
    "header",  # the list entry that names the message
    "timing",  # a clock reading kept for another purpose
    "turn",  # the turn the message belongs to
    "neighbour",  # the nearest message that has a time
    "interpolated",  # spread between two known times
    "session",  # the session's own start
    "file",  # the file's modification time
]


class Origin(Struct, frozen=True, gc=False):
    """Where something was read: enough to open it again and look."""

    path: str
    place: str  # "line 41", "bubbleId:…", "blob 3f2a…": whatever the format counts in


class TokenUsage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens as the tool wrote them down; None where it did not count."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_1h_input_tokens: int | None = None  # the part of cache creation kept for an hour
    is_at_least: bool = False  # the tool wrote it before the response was finished
    speed: str | None = None  # a price class other than the standard one
    cost_usd: float | None = None  # what the tool itself said it cost

    @property
    def total(self) -> int:
        return (
            (self.input_tokens or 0)
            + (self.output_tokens or 0)
            + (self.cache_creation_input_tokens or 0)
            + (self.cache_read_input_tokens or 0)
        )

    def merged(self, other: "TokenUsage") -> "TokenUsage":
        """The field-wise maximum: lines of one response repeat its usage while it grows."""
        return TokenUsage(
            _larger(self.input_tokens, other.input_tokens),
            _larger(self.output_tokens, other.output_tokens),
            _larger(self.cache_creation_input_tokens, other.cache_creation_input_tokens),
            _larger(self.cache_read_input_tokens, other.cache_read_input_tokens),
            _larger(self.cache_creation_1h_input_tokens, other.cache_creation_1h_input_tokens),
            self.is_at_least and other.is_at_least,
            self.speed or other.speed,
            _larger(self.cost_usd, other.cost_usd),
        )


_Number = TypeVar("_Number", int, float)


def _larger(one: _Number | None, other: _Number | None) -> _Number | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


class Attachment(Struct, frozen=True, gc=False, omit_defaults=True):
    """Something that came along with a message: named and measured, never carried."""

    kind: str  # "image", "document", "file", "folder", "selection", "commit", "link", "rule", "terminal", …
    name: str | None = None
    media_type: str | None = None
    size: int | None = None  # bytes, when the tool kept them
    path: str | None = None


class Hunk(Struct, frozen=True, gc=False, omit_defaults=True):
    """Lines taken out and lines put in at one place of a file. A start is None when the tool did not say."""

    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    old_start: int | None = None
    new_start: int | None = None


class Edit(Struct, frozen=True, gc=False, omit_defaults=True):
    """What one tool call did to one file."""

    path: str
    hunks: tuple[Hunk, ...] = ()
    kind: Literal["create", "update", "delete"] = "update"
    lines_added: int | None = None  # the tool's own figures, where hunks are not kept
    lines_removed: int | None = None

    @property
    def added(self) -> int:
        if self.lines_added is not None:
            return self.lines_added
        return sum(len(hunk.added) for hunk in self.hunks)

    @property
    def removed(self) -> int:
        if self.lines_removed is not None:
            return self.lines_removed
        return sum(len(hunk.removed) for hunk in self.hunks)


class ToolCall(Struct, frozen=True, gc=False, omit_defaults=True):
    """A tool the assistant asked for, and what came of it."""

    id: str | None
    name: str
    params: dict[str, Any] = {}
    result: str | None = None  # "" when answered with nothing, None when not answered
    status: Status = "pending"
    decision: Decision | None = None
    edits: tuple[Edit, ...] = ()

    @property
    def is_error(self) -> bool:
        return self.status == "failed"


_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")  # faster than ignoring case


def record_id_of(id_: str) -> str:
    """The id of the record that a message is from."""
    return id_.partition(".")[0]


def is_uuid(record: str) -> bool:
    """Whether a record's id means the same record in any session; hashes and line numbers do not."""
    return _UUID.fullmatch(record) is not None


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """One thing said or done. A tool call and its result are one message."""

    id: str  # the tool's own id; a record that gives several messages adds ".1", ".2", … to the later ones
    role: Role
    content: str
    origin: Origin
    kind: str | None = (
        None  # why a message is not plain talk: "compaction", "command", "interruption", "queued", …
    )
    timestamp: datetime | None = None  # aware, UTC; None when neither written nor to be inferred
    timestamp_source: TimeSource | None = None
    model: str | None = None
    parent_id: str | None = None
    response_id: str | None = None
    agent_id: str | None = None  # the subagent that said it
    is_active: bool = True  # on the branch that the tool itself shows
    is_sidechain: bool = False
    tool: ToolCall | None = None
    attachments: tuple[Attachment, ...] = ()
    cwd: str | None = None
    git_branch: str | None = None
    stop_reason: str | None = None
    copied_from: str | None = None  # the session that first held a message which a resume or fork repeated
    usage: TokenUsage | None = (
        None  # as found on this record; a response's share is the maximum over its records
    )
