"""Subagents of a transcript: the calls that started them, and the totals in their results.

Claude Code 1.0 writes the lines of a subagent into its parent's file. Later versions use a separate file,
first in the same folder, then in a subfolder. Next to it can be a sidecar: a JSON file with the call that
started the subagent and its type.
"""

import re
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from backscroll.model.stream import Agent, Item, SubagentLink
from backscroll.readers import jsonl, lenient_json
from backscroll.sources.claude_code.transcript.line_structs import (
    ApiMessage,
    Line,
    Progress,
    ToolUseResult,
    as_count,
    as_text,
    decoder,
)

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript

_SAFE_NAME = re.compile(r"[\w-]+")
_TASK_ID = re.compile(r"<task-id>\s*([^<\s]+)\s*</task-id>")
_TOOL_USE_ID = re.compile(r"<tool-use-id>\s*([^<\s]+)\s*</tool-use-id>")
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)
_USAGE_TAG = re.compile(r"<(subagent_tokens|total_tokens|tool_uses|duration_ms)>([0-9]{1,15})</\1>")

# Subagents that Claude Code starts for itself, in versions 2.1.2 to 2.1.326. Their ids are a<label>-<digits>.
_OWN_LABELS = (
    "agent_summary",
    "auto_dream",
    "away_summary",
    "compact",
    "extract_memories",
    "prompt_suggestion",
    "rename",
    "resume_cache_warm",
    "session_memory",
    "side_question",
    "speculation",
)
_OWN_PREFIXES = tuple(f"a{label}-" for label in _OWN_LABELS)


class AgentCall(Struct, array_like=True):
    """Tool call that starts a subagent."""

    prompt: str | None
    description: str | None
    kind: str | None
    at: datetime | None


class AgentTotals(Struct, array_like=True):
    """Totals of a finished subagent, from the result of its call."""

    agent_id: str | None
    duration_ms: int | None
    tokens: int | None
    tool_uses: int | None
    model: str | None


class AgentReport(NamedTuple):
    """Notification that a subagent in the background has finished."""

    agent_id: str
    text: str
    duration_ms: int | None
    tokens: int | None
    tool_uses: int | None


class AgentStart(Struct, array_like=True):
    """First prompt of a subagent that is inlined in this file."""

    prompt: str
    at: datetime | None


class Agents(Struct):
    """Subagents that one transcript mentions. Encoded by name in checkpoints."""

    calls: dict[str, AgentCall] = field(default_factory=dict)  # by call id
    totals: dict[str, AgentTotals] = field(default_factory=dict, name="figures")  # by call
    # Inlined subagents, by line id.
    agents_by_line: dict[str, str] = field(default_factory=dict, name="threads")
    inline: dict[str, AgentStart | None] = field(default_factory=dict)
    known_links: set[str] = field(default_factory=set)  # keys of emitted links

    def add_call(self, call_id: str, params: dict[str, Any], at: datetime | None) -> None:
        self.calls[call_id] = AgentCall(
            as_text(params.get("prompt")),
            as_text(params.get("description")),
            as_text(params.get("subagent_type")),
            at,
        )

    def add_totals(self, call_id: str, result: ToolUseResult) -> str | None:
        """Store the totals of a finished subagent. Return its id if the result contains it."""
        agent_id = as_text(result.agent_id)
        self.totals[call_id] = AgentTotals(
            agent_id,
            as_count(result.total_duration_ms),
            as_count(result.total_tokens),
            as_count(result.total_tool_use_count),
            as_text(result.resolved_model),
        )
        return agent_id

    def add_report(self, report: AgentReport) -> None:
        """Store the totals of a subagent in the background. If it is continued, it reports again."""
        for call_id, known in self.totals.items():
            if known.agent_id == report.agent_id:
                self.totals[call_id] = AgentTotals(
                    known.agent_id, report.duration_ms, report.tokens, report.tool_uses, known.model
                )

    def assign_line(self, id_: str, parent: str | None, agent_id: str | None) -> tuple[str, bool]:
        """Assign a sidechain line to the subagent of its parent line, or to a new one.

        ``agent_id`` is the id in the line, if there is one. Return the id of the subagent, and whether this
        line is its first.
        """
        agent = self.agents_by_line.get(parent) if parent is not None else None
        is_first = agent is None
        if agent is None:
            agent = agent_id or f"inline-{id_[:8]}"
        self.agents_by_line[id_] = agent
        if agent not in self.inline:
            self.inline[agent] = None
        return agent, is_first

    def set_start(self, agent: str, prompt: str, at: datetime | None) -> None:
        if agent in self.inline and self.inline[agent] is None:
            self.inline[agent] = AgentStart(prompt, at)

    def is_new_link(self, link: SubagentLink) -> bool:
        """Return whether a link is new, and remember it. Progress lines repeat a link hundreds of times."""
        key = f"{link.agent_id} {link.tool_call_id} {link.strength}"
        if key in self.known_links:
            return False
        self.known_links.add(key)
        return True

    def all_agents(self, session_id: str | None, own_id: str | None = None) -> tuple[Agent, ...]:
        """Return every subagent of this file: inlined ones, and those that its calls started.

        ``own_id`` is the subagent that this file belongs to. None of its calls started it.
        """
        calls = self._match_inlined(own_id)
        agents = [
            self._build_agent(agent_id, session_id, calls.get(agent_id), start)
            for agent_id, start in self.inline.items()
        ]
        matched = set(calls.values())
        for call_id, totals in self.totals.items():
            if totals.agent_id is not None and call_id not in matched:
                agents.append(self._build_agent(totals.agent_id, session_id, call_id, None))
        return tuple(agents)

    def _match_inlined(self, own_id: str | None) -> dict[str, str]:
        """Match inlined subagents to calls: by the same prompt, else by time if only one call is possible."""
        calls_by_prompt: dict[str, deque[str]] = {}
        for call_id, call in self.calls.items():
            calls_by_prompt.setdefault((call.prompt or "").strip(), deque()).append(call_id)
        found: dict[str, str] = {}
        others: list[tuple[datetime, str]] = []
        for agent_id, start in self.inline.items():
            if agent_id == own_id or start is None:
                continue
            if call_ids := calls_by_prompt.get(start.prompt.strip()):
                found[agent_id] = call_ids.popleft()
            elif start.at is not None:
                others.append((start.at, agent_id))
        matched = set(found.values())
        unmatched = sorted(
            (call.at, call_id) for call_id, call in self.calls.items() if call.at and call_id not in matched
        )
        candidates: list[str] = []
        next_call = ambiguous_count = 0
        for started_at, agent_id in sorted(others):
            while next_call < len(unmatched) and unmatched[next_call][0] <= started_at:
                candidates.append(unmatched[next_call][1])
                next_call += 1
            if len(candidates) == 1:
                found[agent_id] = candidates.pop()
                continue
            ambiguous_count += 1
            if ambiguous_count >= len(candidates):
                candidates, ambiguous_count = [], 0
        return found

    def _build_agent(
        self, agent_id: str, session_id: str | None, call_id: str | None, start: AgentStart | None
    ) -> Agent:
        call = self.calls.get(call_id) if call_id is not None else None
        totals = self.totals.get(call_id) if call_id is not None else None
        return Agent(
            agent_id=agent_id,
            parent_session_id=session_id,
            tool_call_id=call_id,
            prompt=start.prompt if start else call.prompt if call else None,
            model=totals.model if totals else None,
            kind=call.kind if call else None,
            description=call.description if call else None,
            total_duration_ms=totals.duration_ms if totals else None,
            total_tokens=totals.tokens if totals else None,
            total_tool_use_count=totals.tool_uses if totals else None,
            started_at=start.at if start else call.at if call else None,
            is_hidden=start is not None and start.prompt.strip() == "Warmup",
        )


def parse_report(text: str) -> AgentReport | None:
    """Return the report in a notification; None if it has none, as that of a shell command."""
    begin, end = text.find("<result>"), text.rfind("</result>")
    if end < begin or begin < 0 or not text.lstrip().startswith("<task-notification>"):
        return None
    agent_id, summary = _TASK_ID.search(text, 0, begin), _SUMMARY.search(text, 0, begin)
    if agent_id is None:
        return None
    usage = {name: int(count) for name, count in _USAGE_TAG.findall(text, end)}
    parts = (
        summary[1] if summary is not None else "",
        text[begin + len("<result>") : end],
        text[end:].partition("</task-notification>")[2],
    )
    return AgentReport(
        agent_id[1],
        "\n\n".join(part.strip() for part in parts if part.strip()),
        usage.get("duration_ms"),
        usage.get("subagent_tokens", usage.get("total_tokens")),
        usage.get("tool_uses"),
    )


def notification_links(content: Any) -> list[SubagentLink]:
    """Return the links between calls and subagents in a queued notification."""
    text = as_text(content)
    if text is None or "<task-id>" not in text:
        return []
    tasks, calls = _TASK_ID.findall(text), _TOOL_USE_ID.findall(text)
    return [
        SubagentLink(agent_id=task, tool_call_id=call, evidence="queued notification", strength=4)
        for task, call in zip(tasks, calls, strict=False)
    ]


def progress_link(value: Line) -> SubagentLink | None:
    """Return the link to a running subagent from a progress line."""
    data = value.data
    if not isinstance(data, Progress) or data.type != "agent_progress":
        return None
    agent_id, call_id = as_text(data.agent_id), as_text(value.parent_tool_use_id)
    if agent_id is None or call_id is None:
        return None
    return SubagentLink(agent_id=agent_id, tool_call_id=call_id, evidence="progress line", strength=3)


def agent_id_of(path: Path) -> str:
    """Return the id of a subagent from its file name."""
    return path.stem.removeprefix("agent-")


def results_folder(path: Path, parent_id: str | None) -> Path:
    """Return the folder with the long tool results of a session.

    It is always in the session's own folder. ``parent_id`` is read from the lines of the file and can be
    malicious.
    """
    for folder in path.parents:
        if folder.parent.name == "projects":
            break
        if folder.name == "subagents":
            return folder.parent / "tool-results"
    session_id = parent_id if parent_id is not None and _SAFE_NAME.fullmatch(parent_id) else path.stem
    return path.parent / session_id / "tool-results"


# Sidecar files


def load_sidecar(path: Path) -> dict[str, Any]:
    """Return the sidecar of a transcript; empty if there is none."""
    try:
        sidecar = lenient_json.load(path.with_name(f"{path.stem}.meta.json").read_bytes())
    except (OSError, *lenient_json.FAILURES):
        return {}
    return sidecar if isinstance(sidecar, dict) else {}


def sidecar_link(agent_id: str, sidecar: dict[str, Any]) -> SubagentLink | None:
    """Return the link to the call that started the subagent. The sidecar is the best evidence."""
    call_id = as_text(sidecar.get("toolUseId"))
    if call_id is None:
        return None
    return SubagentLink(agent_id=agent_id, tool_call_id=call_id, evidence="sidecar file", strength=1)


def with_sidecar(agent: Agent, sidecar: dict[str, Any], model: str | None) -> Agent:
    """Return the subagent with the fields of its sidecar."""
    return replace(
        agent,
        tool_call_id=as_text(sidecar.get("toolUseId")) or agent.tool_call_id,
        parent_agent_id=as_text(sidecar.get("parentAgentId")) or agent.parent_agent_id,
        kind=as_text(sidecar.get("agentType")) or agent.kind,
        description=as_text(sidecar.get("description")) or agent.description,
        model=as_text(sidecar.get("model")) or model or agent.model,
    )


class HiddenReason(NamedTuple):
    """Reason why a conversation is hidden from lists."""

    reason: str
    is_unlinked: bool = False  # the only reason is that no tool call is known to have started it


def find_hidden_reason(agent: Agent, *, is_bare_answer: bool = False) -> HiddenReason | None:
    """Return why a subagent counts as background work of the tool; None if it does not.

    ``is_bare_answer`` means that its file is not in a ``subagents`` folder, begins with an assistant message
    and has no sidecar.
    """
    if agent.agent_id.startswith(_OWN_PREFIXES):
        return HiddenReason("started by the tool for itself")
    if (agent.prompt or "").strip() == "Warmup":
        return HiddenReason("warm-up")
    if is_bare_answer:
        return HiddenReason("begins with an answer and is linked to no call", is_unlinked=True)
    return None


# Subagents without a file


class ProgressAgents:
    """Subagents in the progress lines of their parent. Readers of those that have no file, by their id.

    In a terminal, versions 2.1.10 to 2.1.83 repeat each prompt, call and result of a running subagent in a
    progress line of its parent. If the file of the subagent is missing, as in many copied histories, these
    lines are all that is left of it. They become a session of their own, which the subagent's file replaces
    when it is found.
    """

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
        message = _decode_message(raw)
        if message is None:
            return False
        reader = self._reader(agent_id, as_text(value.parent_tool_use_id))
        tree = reader.tree
        if isinstance(message.uuid, str) and tree.find(message.uuid) >= 0:
            return True  # repeated
        message.parent_uuid = tree.ids[-1] if tree.ids else None
        message.is_sidechain = True
        for name in ("session_id", "cwd", "version", "git_branch", "forked_from"):
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


def _decode_message(raw: bytes) -> Line | None:
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
