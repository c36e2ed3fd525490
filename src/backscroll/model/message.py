"""Messages and their parts, and the merge of the messages that two stores have of one session."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

Time = Annotated[datetime, Meta(tz=True)]  # aware; its JSON Schema has a format
# Position of a session's annotations in the index, after every message that a session can have.
ANNOTATIONS_POSITION = 1 << 40

Role = Literal["user", "assistant", "thinking", "tool", "error", "system"]
Status = Literal["completed", "pending", "failed", "cancelled"]
Decision = Literal["accepted", "rejected", "modified"]

# Kinds of user messages that the user typed. "feedback" and "answer" were typed into a dialog.
TYPED_KINDS = (None, "queued", "feedback", "answer")

# Kinds of messages whose own record is not there, not yet or no longer.
PLACEHOLDER_KINDS = ("missing", "recovered")

# Where a timestamp comes from. "stored": the record has it. All others are inferred.
TimeSource = Literal[
    "stored",  # in the record itself
    "header",  # in the list entry of the message
    "timing",  # in a field for another purpose
    "turn",  # from the turn of the message
    "neighbour",  # from the nearest message with a timestamp
    "interpolated",  # between two known timestamps
    "session",  # start or end of the session
    "file",  # modification time of the file
]


class Origin(Struct, frozen=True, gc=False):
    """Where a value was read: path and location."""

    path: str
    place: str  # "line 41", "bubbleId:…", "blob 3f2a…"


class TokenUsage(Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens as reported by the tool; None if it reports none."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_1h_input_tokens: int | None = None  # part of cache creation that is cached for an hour
    is_at_least: bool = False  # written before the response was finished
    speed: str | None = None  # a price class other than the standard one
    cost_usd: float | None = None  # as reported by the tool

    @property
    def total(self) -> int:
        return (
            (self.input_tokens or 0)
            + (self.output_tokens or 0)
            + (self.cache_creation_input_tokens or 0)
            + (self.cache_read_input_tokens or 0)
        )

    def merged(self, other: "TokenUsage") -> "TokenUsage":
        """Return the maximum of each field. The lines of one response repeat its growing usage."""
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
    """Name and size of something attached to a message, without its content."""

    kind: str  # "image", "document", "file", "folder", "selection", "commit", "link", "rule", "terminal", …
    name: str | None = None
    media_type: str | None = None
    size: int | None = None  # bytes, if stored
    path: str | None = None


class Hunk(Struct, frozen=True, gc=False, omit_defaults=True):
    """Removed and added lines at one position of a file. A start is None if the tool does not store it."""

    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    old_start: int | None = None
    new_start: int | None = None


class Edit(Struct, frozen=True, gc=False, omit_defaults=True):
    """Change of one file by one tool call."""

    path: str
    hunks: tuple[Hunk, ...] = ()
    kind: Literal["create", "update", "delete"] = "update"
    lines_added: int | None = None  # as reported by the tool, if hunks are not stored
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
    """A tool call of the assistant and its result."""

    id: str | None
    name: str
    params: dict[str, Any] = {}
    result: str | None = None  # "" for an empty result, None without a result
    status: Status = "pending"
    decision: Decision | None = None
    edits: tuple[Edit, ...] = ()

    @property
    def is_error(self) -> bool:
        return self.status == "failed"


@cache
def _uuid_pattern() -> re.Pattern[str]:
    """Compile on first use: most commands do not need it."""
    return re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")  # faster than re.IGNORECASE


def record_id_of(id_: str) -> str:
    """Return the id of the record that a message comes from."""
    return id_.partition(".")[0]


def is_uuid(record: str) -> bool:
    """Return whether a record id is globally unique. Hashes and line numbers are not."""
    return _uuid_pattern().fullmatch(record) is not None


class Message(Struct, frozen=True, gc=False, omit_defaults=True):
    """One entry of a session. A tool call and its result are one message."""

    id: str  # the tool's id; if a record yields several messages, the later ones add ".1", ".2", …
    role: Role
    content: str
    origin: Origin
    kind: str | None = (
        None  # set if it is not plain conversation: "compaction", "command", "interruption", "queued", …
    )
    timestamp: datetime | None = None  # aware, UTC; None if not stored and not inferable
    timestamp_source: TimeSource | None = None
    model: str | None = None
    parent_id: str | None = None
    response_id: str | None = None
    agent_id: str | None = None  # the subagent that wrote it
    is_active: bool = True  # on the branch that the tool shows
    is_sidechain: bool = False
    tool: ToolCall | None = None
    attachments: tuple[Attachment, ...] = ()
    cwd: str | None = None
    git_branch: str | None = None
    stop_reason: str | None = None
    copied_from: str | None = (
        None  # the session that first contained a message that a resume or fork repeated
    )
    usage: TokenUsage | None = None  # of this record; the usage of a response is the maximum of its records

    @property
    def has_inferred_time(self) -> bool:
        """Whether the timestamp comes from somewhere else than the record. Views mark it with ``~``."""
        return self.timestamp_source not in (None, "stored")


def merge_messages(messages: Sequence[Message], others: Iterable[Message]) -> Sequence[Message]:
    """Return the messages of two stores, the first in its own order.

    Messages that only the second store has are inserted by timestamp, or replace a placeholder of their
    record. If both have a message and the second has additional text, its version is added as an inactive
    message.
    """
    if not messages:
        return list(others)
    placeholders = {
        record_id_of(message.id): message for message in messages if message.kind in PLACEHOLDER_KINDS
    }
    if placeholders:
        others = list(others)
        messages = _fill_placeholders(messages, placeholders, others)
    known: dict[str, list[Message]] = {}
    for message in messages:
        known.setdefault(message.id, []).append(message)
    more: list[tuple[float, Message]] = []
    for timestamp, message in _with_timestamps(others):
        first = known.get(message.id)
        if first is None:
            more.append((timestamp, message))
        elif not all(any(_contains(one, text, message) for one in first) for text in message_texts(message)):
            more.append((timestamp, replace(message, is_active=False)))
    if not more:
        return messages
    from heapq import merge  # start-up: few sessions come from several stores

    return [message for _, message in merge(_with_timestamps(messages), more, key=itemgetter(0))]


def _fill_placeholders(
    messages: Sequence[Message], placeholders: Mapping[str, Message], others: Iterable[Message]
) -> Sequence[Message]:
    """Return the messages with the others' content in the places of placeholders.

    An inactive message does not fill an active placeholder: it was replaced before the record was lost.
    """
    fillings: dict[str, list[Message]] = {}
    for other in others:
        placeholder = placeholders.get(record_id_of(other.id))
        if (
            placeholder is not None
            and other.kind not in PLACEHOLDER_KINDS
            and (other.is_active or not placeholder.is_active)
        ):
            fillings.setdefault(placeholder.id, []).append(other)
    if not fillings:
        return messages
    filled: list[Message] = []
    for message in messages:
        is_placeholder = message.kind in PLACEHOLDER_KINDS
        filled += fillings.pop(message.id, [message]) if is_placeholder else [message]
    return filled


def message_texts(message: Message) -> Iterator[str]:
    """Yield the texts of a message. The output of a running call is not a result yet."""
    if content := message.content.strip():
        yield content
    tool = message.tool
    if tool is not None and tool.status != "pending" and tool.result and (result := tool.result.strip()):
        yield result


def _contains(message: Message, text: str, other: Message) -> bool:
    """Return whether a message contains a text of another one. A third one may replace a placeholder."""
    if message.kind in PLACEHOLDER_KINDS and other.kind not in PLACEHOLDER_KINDS:
        return False
    return text in message.content or text in ((message.tool and message.tool.result) or "")


def _with_timestamps(messages: Iterable[Message]) -> Iterator[tuple[float, Message]]:
    """Yield messages with non-decreasing timestamps. A message without one gets that of its predecessor."""
    latest = float("-inf")
    for message in messages:
        if message.timestamp is not None:
            latest = max(latest, message.timestamp.timestamp())
        yield latest, message
