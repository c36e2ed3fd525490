"""State of one record while it is parsed."""

from typing import TYPE_CHECKING, Any

import msgspec

from backscroll.model import Attachment, Message, Origin, Role, TokenUsage, ToolCall
from backscroll.readers import jsonl, lenient_json
from backscroll.sources.claude_code.transcript.branches import SIDECHAIN
from backscroll.sources.claude_code.transcript.line_structs import (
    ApiMessage,
    ForkedFrom,
    Line,
    RawResult,
    as_text,
)
from backscroll.sources.claude_code.transcript.state_lines import branch_name

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript

__all__ = ["LineContext", "full_record", "record_position"]


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
