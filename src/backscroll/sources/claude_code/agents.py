"""Subagents: who started them, and what the session wrote down of them.

Claude Code 1.0 wrote a subagent's lines into its parent's file; later versions
give each a file of its own, first beside the parent's, then below it.
"""

from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from backscroll.model import Agent, Link
from backscroll.sources.claude_code.lines import integer, text
from backscroll.sources.claude_code.results import AgentResult

__all__ = ["Agents", "Pending", "agent_id_of", "link_in_progress", "results_folder"]


class Pending(Struct, array_like=True):
    """A call that has not been answered."""

    name: str
    node: int
    params: dict[str, Any] | None  # only of edits, which their answer needs


class Asked(Struct, array_like=True):
    """A call that starts a subagent."""

    prompt: str | None
    description: str | None
    kind: str | None
    at: datetime | None


class Figures(Struct, array_like=True):
    """What the parent wrote down when a subagent ended."""

    agent_id: str | None
    duration_ms: int | None
    tokens: int | None
    tool_uses: int | None
    model: str | None


class Began(Struct, array_like=True):
    """The first words of a subagent inlined in this file."""

    prompt: str
    at: datetime | None


class Agents(Struct):
    """The subagents that one transcript tells of."""

    calls: dict[str, Asked] = field(default_factory=dict)
    figures: dict[str, Figures] = field(default_factory=dict)
    threads: dict[str, str] = field(default_factory=dict)  # line id to the inlined agent it belongs to
    inline: dict[str, Began | None] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)  # links already told

    def asked(self, call: str, params: dict[str, Any], at: datetime | None) -> None:
        self.calls[call] = Asked(
            text(params.get("prompt")),
            text(params.get("description")),
            text(params.get("subagent_type")),
            at,
        )

    def ended(self, call: str, result: AgentResult) -> str | None:
        """Keep a finished agent's figures. Returns its id where the parent knew it."""
        agent_id = text(result.agent_id)
        self.figures[call] = Figures(
            agent_id,
            integer(result.total_duration_ms),
            integer(result.total_tokens),
            integer(result.total_tool_use_count),
            text(result.resolved_model),
        )
        return agent_id

    def thread(self, id_: str, parent: str | None, named: str | None) -> tuple[str, bool]:
        """The agent a sidechain line belongs to, and whether it begins with this line."""
        agent = self.threads.get(parent) if parent is not None else None
        begins = agent is None
        if agent is None:
            agent = named or f"inline-{id_[:8]}"
        self.threads[id_] = agent
        if agent not in self.inline:
            self.inline[agent] = None
        return agent, begins

    def began(self, agent: str, prompt: str, at: datetime | None) -> None:
        if agent in self.inline and self.inline[agent] is None:
            self.inline[agent] = Began(prompt, at)

    def is_news(self, link: Link) -> bool:
        """Whether this link was not told before: progress lines repeat it hundreds of times."""
        key = f"{link.agent_id} {link.tool_call_id}"
        if key in self.known:
            return False
        self.known.add(key)
        return True

    def told(self, session_id: str | None, own: str | None = None) -> tuple[Agent, ...]:
        """Every agent known from this file: those inlined in it, and those its calls started.

        ``own`` is the agent whose file this is; none of its calls can have started it.
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
        """Each inlined agent's call: the one that asked with its words, else the last before it began."""
        free: dict[str, list[str]] = {}
        for call, asked in self.calls.items():
            free.setdefault((asked.prompt or "").strip(), []).append(call)
        found: dict[str, str] = {}
        for agent_id, began in self.inline.items():
            if agent_id != own and began is not None and free.get(began.prompt.strip()):
                found[agent_id] = free[began.prompt.strip()].pop(0)
        taken = set(found.values())
        for agent_id, began in self.inline.items():
            if agent_id == own or agent_id in found or began is None or began.at is None:
                continue
            earlier = [
                call
                for call, asked in self.calls.items()
                if call not in taken and asked.at is not None and asked.at <= began.at
            ]
            if earlier:
                found[agent_id] = earlier[-1]
                taken.add(earlier[-1])
        return found

    def _agent(self, agent_id: str, session_id: str | None, call: str | None, began: Began | None) -> Agent:
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
    """A subagent's id from its file's name."""
    return path.stem.removeprefix("agent-")


def results_folder(path: Path, parent_id: str | None) -> Path:
    """Where a transcript's spilled tool results lie: in the session's own folder and nowhere else."""
    for folder in path.parents:
        if folder.name == "subagents":
            return folder.parent / "tool-results"
    return path.parent / (parent_id or path.stem) / "tool-results"


def link_in_progress(record: dict[str, Any]) -> Link | None:
    """Which call a running agent belongs to, as a progress line tells it."""
    data = record.get("data")
    if not isinstance(data, dict) or data.get("type") != "agent_progress":
        return None
    agent, call = text(data.get("agentId")), text(record.get("parentToolUseID"))
    if agent is None or call is None:
        return None
    return Link(agent_id=agent, tool_call_id=call, evidence="progress line", strength=3)
