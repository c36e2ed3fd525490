"""Subagents: the calls that started them and the totals that their parent stored.

Claude Code 1.0 writes the lines of a subagent into its parent's file. Later versions use a separate file,
first in the same folder, then in a subfolder.
"""

import re
from collections import deque
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from backscroll.model import Agent, SubagentLink
from backscroll.sources.claude_code.transcript.line_types import (
    Line,
    Progress,
    ToolUseResult,
    count_value,
    text,
)

__all__ = ["Agents", "Pending", "agent_id_of", "link_in_progress", "results_folder"]

_NAME = re.compile(r"[\w-]+")


class Pending(Struct, array_like=True):
    """A call without a result."""

    name: str
    node: int
    params: dict[str, Any] | None  # only for edits; the result needs them


class AgentCall(Struct, array_like=True):
    """A call that starts a subagent."""

    prompt: str | None
    description: str | None
    kind: str | None
    at: datetime | None


class AgentTotals(Struct, array_like=True):
    """Totals of a finished subagent, stored by its parent."""

    agent_id: str | None
    duration_ms: int | None
    tokens: int | None
    tool_uses: int | None
    model: str | None


class AgentStart(Struct, array_like=True):
    """First prompt of a subagent that is inlined in this file."""

    prompt: str
    at: datetime | None


class Agents(Struct):
    """The subagents that one transcript mentions."""

    calls: dict[str, AgentCall] = field(default_factory=dict)
    figures: dict[str, AgentTotals] = field(default_factory=dict)
    threads: dict[str, str] = field(default_factory=dict)  # line id to inlined subagent
    inline: dict[str, AgentStart | None] = field(default_factory=dict)
    known_links: set[str] = field(default_factory=set)  # already emitted

    def add_call(self, call: str, params: dict[str, Any], at: datetime | None) -> None:
        self.calls[call] = AgentCall(
            text(params.get("prompt")),
            text(params.get("description")),
            text(params.get("subagent_type")),
            at,
        )

    def add_totals(self, call: str, result: ToolUseResult) -> str | None:
        """Store the totals of a finished subagent. Return its id if the parent has it."""
        agent_id = text(result.agent_id)
        self.figures[call] = AgentTotals(
            agent_id,
            count_value(result.total_duration_ms),
            count_value(result.total_tokens),
            count_value(result.total_tool_use_count),
            text(result.resolved_model),
        )
        return agent_id

    def thread(self, id_: str, parent: str | None, named: str | None) -> tuple[str, bool]:
        """Return the subagent of a sidechain line, and whether this line is its first."""
        agent = self.threads.get(parent) if parent is not None else None
        begins = agent is None
        if agent is None:
            agent = named or f"inline-{id_[:8]}"
        self.threads[id_] = agent
        if agent not in self.inline:
            self.inline[agent] = None
        return agent, begins

    def add_start(self, agent: str, prompt: str, at: datetime | None) -> None:
        if agent in self.inline and self.inline[agent] is None:
            self.inline[agent] = AgentStart(prompt, at)

    def is_new_link(self, link: SubagentLink) -> bool:
        """Return whether a link was not emitted before. Progress lines repeat it hundreds of times."""
        key = f"{link.agent_id} {link.tool_call_id} {link.strength}"
        if key in self.known_links:
            return False
        self.known_links.add(key)
        return True

    def all_agents(self, session_id: str | None, own: str | None = None) -> tuple[Agent, ...]:
        """Return every subagent of this file: inlined ones, and those that its calls started.

        ``own`` is the subagent that this file belongs to. None of its calls started it.
        """
        calls = self._calls_of_inlined(own)
        agents = [
            self._agent(agent_id, session_id, calls.get(agent_id), began)
            for agent_id, began in self.inline.items()
        ]
        taken = set(calls.values())
        for call, figures in self.figures.items():
            if figures.agent_id is not None and call not in taken:
                agents.append(self._agent(figures.agent_id, session_id, call, None))
        return tuple(agents)

    def _calls_of_inlined(self, own: str | None) -> dict[str, str]:
        """Match inlined subagents to calls: by the same prompt, else by time if only one call is possible."""
        asking: dict[str, deque[str]] = {}
        for call, asked in self.calls.items():
            asking.setdefault((asked.prompt or "").strip(), deque()).append(call)
        found: dict[str, str] = {}
        others: list[tuple[datetime, str]] = []
        for agent_id, began in self.inline.items():
            if agent_id == own or began is None:
                continue
            if calls := asking.get(began.prompt.strip()):
                found[agent_id] = calls.popleft()
            elif began.at is not None:
                others.append((began.at, agent_id))
        taken = set(found.values())
        free = sorted(
            (asked.at, call) for call, asked in self.calls.items() if asked.at and call not in taken
        )
        waiting: list[str] = []
        at = unclear = 0
        for moment, agent_id in sorted(others):
            while at < len(free) and free[at][0] <= moment:
                waiting.append(free[at][1])
                at += 1
            if len(waiting) == 1:
                found[agent_id] = waiting.pop()
                continue
            unclear += 1  # several calls are possible
            if unclear >= len(waiting):
                waiting, unclear = [], 0
        return found

    def _agent(
        self, agent_id: str, session_id: str | None, call: str | None, began: AgentStart | None
    ) -> Agent:
        asked = self.calls.get(call) if call is not None else None
        figures = self.figures.get(call) if call is not None else None
        return Agent(
            agent_id=agent_id,
            parent_session_id=session_id,
            tool_call_id=call,
            prompt=began.prompt if began else asked.prompt if asked else None,
            model=figures.model if figures else None,
            kind=asked.kind if asked else None,
            description=asked.description if asked else None,
            total_duration_ms=figures.duration_ms if figures else None,
            total_tokens=figures.tokens if figures else None,
            total_tool_use_count=figures.tool_uses if figures else None,
            started_at=began.at if began else asked.at if asked else None,
            is_hidden=began is not None and began.prompt.strip() == "Warmup",
        )


def agent_id_of(path: Path) -> str:
    """Return the id of a subagent from its file name."""
    return path.stem.removeprefix("agent-")


def results_folder(path: Path, parent_id: str | None) -> Path:
    """Return the folder of long tool results, which is always in the session's own folder.

    ``parent_id`` comes from the lines of the file and can be malicious.
    """
    for folder in path.parents:
        if folder.parent.name == "projects":
            break
        if folder.name == "subagents":
            return folder.parent / "tool-results"
    own = parent_id if parent_id is not None and _NAME.fullmatch(parent_id) else path.stem
    return path.parent / own / "tool-results"


def link_in_progress(value: Line) -> SubagentLink | None:
    """Return the link to a running subagent from a progress line."""
    data = value.data
    if not isinstance(data, Progress) or data.type != "agent_progress":
        return None
    agent, call = text(data.agent_id), text(value.parent_tool_use_id)
    if agent is None or call is None:
        return None
    return SubagentLink(agent_id=agent, tool_call_id=call, evidence="progress line", strength=3)
