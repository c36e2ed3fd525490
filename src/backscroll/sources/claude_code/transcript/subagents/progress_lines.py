"""Subagents in the progress lines of their parent.

In a terminal, versions 2.1.10 to 2.1.83 repeat each prompt, call and result of a running subagent in a
progress line of its parent. If the file of the subagent is missing, as in many copied histories, these lines
are all that is left of it. They become a session of their own, which the subagent's file replaces when it is
found.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from backscroll.model import Item
from backscroll.readers import jsonl, lenient_json
from backscroll.sources.claude_code.transcript.line_structs import (
    ApiMessage,
    Line,
    Progress,
    as_text,
    decoder,
)
from backscroll.sources.claude_code.transcript.subagents.agents import agent_id_of

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript

__all__ = ["ProgressAgents"]


class ProgressAgents:
    """Readers of the subagents that have no file of their own, by their id."""

    def __init__(self, parent: "Transcript") -> None:
        self._parent = parent
        self._readers: dict[str, Transcript] = {}
        self._ids_with_file: set[str] | None = None

    def add(self, value: Line, line: jsonl.Line[Line]) -> bool:
        """Parse the message in a progress line. Return whether it belongs to a subagent without a file."""
        data = value.data
        if not isinstance(data, Progress) or data.type != "agent_progress" or not data.message:
            return False
        agent_id = as_text(data.agent_id)
        if agent_id is None or self._has_file(agent_id):
            return False
        raw = bytes(data.message)
        message = _decode(raw)
        if message is None:
            return False
        reader = self._reader(agent_id, as_text(value.parent_tool_use_id))
        tree = reader.tree
        if isinstance(message.uuid, str) and tree.find(message.uuid) >= 0:
            return True  # repeated
        message.parent_uuid = tree.ids[-1] if tree.ids else None
        message.is_sidechain = True
        for name in ("session_id", "cwd", "version", "git_branch"):
            setattr(message, name, getattr(value, name))
        if message.timestamp is None:
            message.timestamp = value.timestamp
        reader.parse_record(message, jsonl.Line(line.number, line.offset, line.size, raw, (message,)), 0)
        return True

    def items(self) -> Iterator[Item]:
        """Yield the messages of each subagent as a session."""
        for agent_id, reader in self._readers.items():
            yield from reader.finish()
            self._parent.state.progress_agents[agent_id] = reader.state

    def _reader(self, agent_id: str, call_id: str | None) -> "Transcript":
        reader = self._readers.get(agent_id)
        if reader is None:
            parent = self._parent
            reader = parent.subagent(agent_id, parent.state.progress_agents.get(agent_id))
            call = parent.state.agents.calls.get(call_id) if call_id is not None else None
            if call is not None:
                reader.sidecar = {"description": call.description, "agentType": call.kind}
            self._readers[agent_id] = reader
        return reader

    def _has_file(self, agent_id: str) -> bool:
        if self._ids_with_file is None:
            self._ids_with_file = _ids_with_file(self._parent.path)
        return agent_id in self._ids_with_file


def _decode(raw: bytes) -> Line | None:
    """Decode a message of a subagent; None if it is not one."""
    try:
        message = decoder.decode(raw)
    except lenient_json.FAILURES:
        return None
    is_message = isinstance(message.message, ApiMessage) and message.type in ("user", "assistant")
    return message if is_message else None


def _ids_with_file(path: Path) -> set[str]:
    """Return the ids of the subagents that have a file below their session, or beside it."""
    files = [*path.parent.glob("agent-*.jsonl"), *path.with_suffix("").rglob("agent-*.jsonl")]
    return {agent_id_of(file) for file in files}
