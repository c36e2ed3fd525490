"""State of one line of the conversation while it is parsed."""

from typing import TYPE_CHECKING, Any

import msgspec

from backscroll.model import Attachment, Message, Origin, Role, TokenUsage, ToolCall
from backscroll.readers import jsonl, lenient_json
from backscroll.sources.claude_code.transcript.branches import SIDE
from backscroll.sources.claude_code.transcript.line_types import ApiMessage, ForkedFrom, Line, RawResult, text

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript

__all__ = ["LineContext", "full_record", "place_of"]


class LineContext:
    """A line of the tree: its node, its subagent and the messages it yields."""

    __slots__ = (
        "agent_id",
        "at",
        "at_source",
        "call_node",
        "count",
        "has_tool_result",
        "id",
        "is_agent_root",
        "is_known",
        "line",
        "model",
        "node",
        "number",
        "origin",
        "parent",
        "response",
        "stop_reason",
        "transcript",
        "usage",
        "value",
    )

    def __init__(
        self, transcript: "Transcript", value: Line, line: jsonl.Line[Line], number: int = 0
    ) -> None:
        self.transcript = transcript
        self.value = value
        self.line, self.number = line, number
        uuid, parent = value.uuid, value.parent_uuid
        self.id = uuid if isinstance(uuid, str) and uuid else f"line-{place_of(line, number)}"
        self.parent = parent if isinstance(parent, str) and parent else None
        self.origin = Origin(transcript.unit.path, f"line {line.number}")
        self.at, self.at_source = transcript.timestamp(value)
        self.count = 0
        self.call_node = -1  # node of the tool call that this line has the result of
        self.has_tool_result = False
        self.agent_id = transcript.agent_id
        self.model: str | None = None
        self.response: str | None = None
        self.stop_reason: str | None = None
        self.usage: TokenUsage | None = None

    @property
    def raw(self) -> bytes:
        """Return the bytes of the record; empty if the line was too large to decode."""
        return self.line.value_bytes(self.number)

    def message(self) -> ApiMessage:
        """Return the API message of the line in any of its forms."""
        found = self.value.message
        if isinstance(found, ApiMessage):
            if found.content is None and found.role is None:
                return ApiMessage(content=_spread(self.raw))
            return found
        if isinstance(found, str):
            return ApiMessage(content=found)
        return ApiMessage(content=text(self.value.content))

    def add_to_tree(self, flags: int) -> None:
        """Add the line to the tree and, if it is a sidechain line, to a subagent."""
        transcript, tree = self.transcript, self.transcript.tree
        self.is_agent_root = False
        if transcript.agent_id is not None:
            self.is_agent_root = transcript.state.agents.inline.get(transcript.agent_id) is None
        elif self.value.is_sidechain is True:
            flags |= SIDE
            self.agent_id, self.is_agent_root = transcript.state.agents.thread(
                self.id, self.parent, text(self.value.agent_id)
            )
        known = len(tree.ids)
        self.node = tree.add(self.id, self.parent, flags, self.response)
        self.is_known = self.node < known  # this id was seen before

    def is_repeat(self, kind: str, words: str) -> bool:
        """Return whether this text was written before under another id.

        Versions 2.0.0 to 2.0.63 repeat whole exchanges. Texts are repeats if they belong to the same
        response, or were typed in the same millisecond.
        """
        same = self.response or text(self.value.timestamp)
        version = self.value.version
        if same is None or self.is_known or self.is_agent_root:
            return False
        if not isinstance(version, str) or not version.startswith("2.0."):
            return False
        repeated = self.transcript.state.find_repeat(f"{same} {kind} {words}", self.id)
        if repeated is not None:
            self.transcript.tree.tie(repeated, self.node)
        return repeated is not None

    def full_record(self) -> dict[str, Any]:
        """Decode the record with all its fields."""
        return full_record(self.raw)

    def raw_result(self) -> bytes:
        """Return the JSON of the structured tool result."""
        return bytes(msgspec.json.decode(self.raw, type=RawResult).tool_use_result) if self.raw else b""

    def raw_block(self, number: int) -> Any:
        """Return a content block with all its fields."""
        message = self.full_record().get("message")
        content = message.get("content") if isinstance(message, dict) else None
        blocks = [block for block in content if block is not None] if isinstance(content, list) else [content]
        return blocks[number] if number < len(blocks) else None

    def missing_part(self) -> str | None:
        """Return which part of a line without messages is missing; None if the line is valid without."""
        record = self.full_record()
        message = record.get("message", record.get("content", self))
        if message is self:
            return "no message in it" if record else None
        if isinstance(message, dict):
            return None if "content" in message else "no content in its message"
        return None if message is None or isinstance(message, str) else "its message is of no known form"

    def add_message(
        self,
        role: Role,
        content: str,
        *,
        kind: str | None = None,
        tool: ToolCall | None = None,
        attachments: tuple[Attachment, ...] = (),
    ) -> None:
        """Emit one message of this line."""
        transcript, value = self.transcript, self.value
        facts = transcript.state.facts
        number = self.count
        self.count = number + 1
        transcript.emit(
            # Positional first: with more than fifteen keyword arguments a call takes four times as long.
            Message(
                self.id if number == 0 else f"{self.id}.{number}",
                role,
                content,
                self.origin,
                kind,
                self.at,
                self.at_source,
                self.model,
                parent_id=self.parent if number == 0 else self.id,
                response_id=self.response,
                agent_id=self.agent_id,
                is_sidechain=self.agent_id is not None,
                tool=tool,
                attachments=attachments,
                cwd=facts.last_cwd if value.cwd == facts.last_cwd else transcript.intern(value.cwd),
                git_branch=facts.branch
                if value.git_branch == facts.branch
                else transcript.intern(value.git_branch),
                stop_reason=self.stop_reason,
                copied_from=None if value.forked_from is None else self._copied_from(),
                usage=self.usage,
            )
        )
        self.usage = None

    def _copied_from(self) -> str | None:
        """Return the session that a fork copied this line from."""
        origin = self.value.forked_from
        if not isinstance(origin, ForkedFrom):
            return None
        session_id = self.transcript.intern(origin.session_id)
        return session_id if session_id != self.transcript.path.stem else None


def place_of(line: jsonl.Line[Line], number: int) -> str:
    """Return an id for a record that has none: its position in the file."""
    return f"{line.number}-{number + 1}" if number else str(line.number)


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


def _spread(raw: bytes) -> str | None:
    """Return a text that is stored under decimal keys, one character each."""
    message = full_record(raw).get("message")
    if not isinstance(message, dict) or "0" not in message:
        return None
    letters: list[str] = []
    while isinstance(letter := message.get(str(len(letters))), str):
        letters.append(letter)
    return "".join(letters)
