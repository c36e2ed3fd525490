"""State of a reader: of one record while it is parsed, and of the file between two reads."""

from datetime import datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from backscroll.model.message import Attachment, Decision, Message, Origin, Role, Status, TokenUsage, ToolCall
from backscroll.readers import jsonl, lenient_json
from backscroll.sources.claude_code.transcript.branches import SIDECHAIN, TreeState
from backscroll.sources.claude_code.transcript.copies import Conversation, Copies
from backscroll.sources.claude_code.transcript.line_structs import (
    ApiMessage,
    ForkedFrom,
    Line,
    RawResult,
    as_text,
)
from backscroll.sources.claude_code.transcript.queue import Queue
from backscroll.sources.claude_code.transcript.state_lines import Facts, branch_name
from backscroll.sources.claude_code.transcript.subagents import Agents
from backscroll.sources.claude_code.transcript.user_text import Commands

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript

MAX_CACHED_ENTRIES = 512  # per dict; repeats and early results are close to their original in the file
_MAX_EARLY_RESULT_BYTES = 4 * 1024 * 1024
_MAX_REJECTIONS = 16  # only those just before an interruption matter


# One record


class LineContext:
    """Record that is a line of the tree: its node, its subagent and the messages it yields."""

    __slots__ = (
        "agent_id",
        "at",
        "at_source",
        "call_node",
        "has_subagent_message",
        "has_tool_result",
        "id",
        "is_agent_root",
        "is_known",
        "line",
        "message_count",
        "model",
        "node",
        "origin",
        "parent",
        "record_index",
        "response",
        "stop_reason",
        "transcript",
        "usage",
        "value",
    )

    def __init__(
        self, transcript: "Transcript", value: Line, line: jsonl.Line[Line], record_index: int = 0
    ) -> None:
        self.transcript = transcript
        self.value = value
        self.line, self.record_index = line, record_index
        uuid, parent = value.uuid, value.parent_uuid
        self.id = uuid if isinstance(uuid, str) and uuid else f"line-{record_position(line, record_index)}"
        self.parent = parent if isinstance(parent, str) and parent else None
        self.origin = Origin(transcript.unit.path, f"line {line.number}")
        self.at, self.at_source = transcript.timestamp(value)
        self.message_count = 0
        self.call_node = -1  # node of the tool call that this line has the result of
        self.has_tool_result = False
        self.has_subagent_message = False
        self.agent_id = transcript.agent_id
        self.model: str | None = None
        self.response: str | None = None
        self.stop_reason: str | None = None
        self.usage: TokenUsage | None = None

    @property
    def raw(self) -> bytes:
        """Return the bytes of the record; empty if the line was too large to decode."""
        return self.line.value_bytes(self.record_index)

    def message(self) -> ApiMessage:
        """Return the API message of the line in any of its forms."""
        found = self.value.message
        if isinstance(found, ApiMessage):
            if found.content is None and found.role is None:
                return ApiMessage(content=_join_characters(self.raw))
            return found
        if isinstance(found, str):
            return ApiMessage(content=found)
        return ApiMessage(content=as_text(self.value.content))

    def add_to_tree(self, flags: int) -> None:
        """Add the line to the tree and, if it is a sidechain line, to a subagent."""
        transcript, tree = self.transcript, self.transcript.tree
        self.is_agent_root = False
        if transcript.agent_id is not None:
            self.is_agent_root = transcript.state.agents.inline.get(transcript.agent_id) is None
        elif self.value.is_sidechain is True:
            flags |= SIDECHAIN
            self.agent_id, self.is_agent_root = transcript.state.agents.assign_line(
                self.id, self.parent, as_text(self.value.agent_id)
            )
        known_count = len(tree.ids)
        self.node = tree.add(self.id, self.parent, flags, self.response)
        self.is_known = self.node < known_count  # this id was seen before

    def is_repeat(self, kind: str, text: str) -> bool:
        """Return whether an earlier line with another id has this text.

        Versions 2.0.0 to 2.0.63 repeat whole exchanges. Equal texts are repeats if they belong to the same
        response, or have the same timestamp.
        """
        group = self.response or as_text(self.value.timestamp)
        version = self.value.version
        if group is None or self.is_known or self.is_agent_root:
            return False
        if not isinstance(version, str) or not version.startswith("2.0."):
            return False
        repeated_id = self.transcript.state.find_repeat(f"{group} {kind} {text}", self.id)
        if repeated_id is not None:
            self.transcript.tree.follow(repeated_id, self.node)
        return repeated_id is not None

    def full_record(self) -> dict[str, Any]:
        """Decode the record with all its fields."""
        return full_record(self.raw)

    def raw_result(self) -> bytes:
        """Return the JSON of the structured tool result."""
        return bytes(msgspec.json.decode(self.raw, type=RawResult).tool_use_result) if self.raw else b""

    def raw_block(self, index: int) -> Any:
        """Return the content block at an index with all its fields."""
        message = self.full_record().get("message")
        content = message.get("content") if isinstance(message, dict) else None
        blocks = [block for block in content if block is not None] if isinstance(content, list) else [content]
        return blocks[index] if index < len(blocks) else None

    def missing_part(self) -> str | None:
        """Return which part of a line without messages is missing; None if the line is valid."""
        record = self.full_record()
        message = record.get("message", record.get("content", self))
        if message is self:
            return "the line has no message" if record else None
        if isinstance(message, dict):
            return None if "content" in message else "the message has no content"
        return None if message is None or isinstance(message, str) else "the message has an unknown form"

    def add_message(
        self,
        role: Role,
        content: str,
        *,
        kind: str | None = None,
        tool: ToolCall | None = None,
        attachments: tuple[Attachment, ...] = (),
    ) -> Message:
        """Emit and return one message of this line."""
        transcript, value = self.transcript, self.value
        facts = transcript.state.facts
        index = self.message_count
        self.message_count = index + 1
        # Positional first: with more than fifteen keyword arguments a call takes four times as long.
        message = Message(
            self.id if index == 0 else f"{self.id}.{index}",
            role,
            content,
            self.origin,
            kind,
            self.at,
            self.at_source,
            self.model,
            parent_id=self.parent if index == 0 else self.id,
            response_id=self.response,
            agent_id=self.agent_id,
            is_sidechain=self.agent_id is not None,
            tool=tool,
            attachments=attachments,
            cwd=facts.last_cwd if value.cwd == facts.last_cwd else transcript.intern(value.cwd),
            git_branch=facts.branch
            if value.git_branch == facts.branch
            else transcript.intern(branch_name(value.git_branch)),
            stop_reason=self.stop_reason,
            copied_from=None if value.forked_from is None else self._copied_from(),
            usage=self.usage,
        )
        transcript.emit(message)
        self.usage = None
        return message

    def _copied_from(self) -> str | None:
        """Return the session that a fork copied this line from."""
        origin = self.value.forked_from
        if not isinstance(origin, ForkedFrom):
            return None
        session_id = self.transcript.intern(origin.session_id)
        return session_id if session_id != self.transcript.path.stem else None


def record_position(line: jsonl.Line[Line], index: int) -> str:
    """Return the position of a record in the file, as an id for records without one."""
    return f"{line.number}-{index + 1}" if index else str(line.number)


def full_record(raw: bytes) -> dict[str, Any]:
    """Decode a record with all its fields; empty if it was too large to decode."""
    try:
        record = msgspec.json.decode(raw)
    except lenient_json.FAILURES:
        try:
            record = lenient_json.load(raw)
        except lenient_json.FAILURES:
            return {}
    return record if isinstance(record, dict) else {}


def _join_characters(raw: bytes) -> str | None:
    """Return a text that is stored as an object: decimal keys with one character each."""
    message = full_record(raw).get("message")
    if not isinstance(message, dict) or "0" not in message:
        return None
    characters: list[str] = []
    while isinstance(character := message.get(str(len(characters))), str):
        characters.append(character)
    return "".join(characters)


# The file, stored in the checkpoint for the next reader


class PendingCall(Struct, array_like=True):
    """Tool call without a result."""

    name: str
    node: int  # index of its line in the tree
    params: dict[str, Any] | None  # only for edits; the result needs them


class EarlyResult(Struct, array_like=True):
    """Tool result that was written before its call. It can be parsed only with the call."""

    result: str
    status: Status
    raw: bytes  # structured result as JSON
    origin: Origin
    record_id: str
    at: datetime | None
    decision: Decision | None = None

    @property
    def size(self) -> int:
        return len(self.result) + len(self.raw)


class ReaderState(Struct, array_like=True):
    """State after the lines read so far. Encoded as an array: the order of the fields is fixed."""

    tree: TreeState = field(default_factory=TreeState)
    facts: Facts = field(default_factory=Facts)
    queue: Queue = field(default_factory=Queue)
    agents: Agents = field(default_factory=Agents)
    pending: dict[str, PendingCall] = field(default_factory=dict)
    bare_calls: dict[str, list[str]] = field(default_factory=dict)  # outside of messages, ids by tool
    answered: dict[str, None] = field(default_factory=dict)  # ids of recent calls with a result
    early: dict[str, EarlyResult] = field(default_factory=dict)
    early_size: int = 0  # bytes
    repeats: dict[bytes, str] = field(default_factory=dict)  # hash of a text, and the id of its first line
    last_at: datetime | None = None
    fault_count: int = 0
    parent_id: str | None = None
    model: str | None = None  # of the first response
    first_role: str | None = None
    is_open: bool = False
    commands: Commands = field(default_factory=Commands)
    copies: Copies = field(default_factory=Copies)
    # By call id: the node of the call and its result. A stopped call has the same result as a rejected one.
    rejections: dict[str, tuple[int, EarlyResult]] = field(default_factory=dict)
    conversation: Conversation = field(default_factory=Conversation)
    last_prompt: Message | None = None  # until the next user line or answer; lines after it can attach files
    progress_agents: dict[str, "ReaderState"] = field(default_factory=dict)  # subagents without a file, by id

    def find_repeat(self, text: str, id_: str) -> str | None:
        """Return the id of an earlier line with this text, if it is recent and has another id."""
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        first_id = self.repeats.get(key)
        if first_id is not None:
            return first_id if first_id != id_ else None
        if len(self.repeats) >= MAX_CACHED_ENTRIES:
            del self.repeats[next(iter(self.repeats))]
        self.repeats[key] = id_
        return None

    def take_pending(self, call_id: str) -> PendingCall | None:
        """Remove and return a call without a result; None if there is none with this id."""
        pending = self.pending.pop(call_id, None)
        if pending is not None:
            if len(self.answered) >= MAX_CACHED_ENTRIES:
                del self.answered[next(iter(self.answered))]
            self.answered[call_id] = None
        return pending

    def keep_early_result(self, call_id: str, early: EarlyResult) -> None:
        """Keep a result until its call is read, unless the call already has a result."""
        if call_id in self.answered or early.size > _MAX_EARLY_RESULT_BYTES:
            return
        self.take_early_result(call_id)
        while self.early and (
            len(self.early) >= MAX_CACHED_ENTRIES or self.early_size + early.size > _MAX_EARLY_RESULT_BYTES
        ):
            self.take_early_result(next(iter(self.early)))
        self.early[call_id] = early
        self.early_size += early.size

    def keep_rejection(self, call_id: str, node: int, result: EarlyResult) -> None:
        """Keep the result of a rejected call until the next line shows whether the call was running."""
        self.rejections[call_id] = node, result
        if len(self.rejections) > _MAX_REJECTIONS:
            del self.rejections[next(iter(self.rejections))]

    def take_early_result(self, call_id: str) -> EarlyResult | None:
        """Remove and return the result that was written before its call."""
        early = self.early.pop(call_id, None)
        if early is not None:
            self.early_size -= early.size
        return early
