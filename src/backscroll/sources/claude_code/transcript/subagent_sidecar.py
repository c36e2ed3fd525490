"""Sidecar file of a subagent's transcript."""

from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from backscroll.model import Agent, SubagentLink
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.transcript.line_types import text

__all__ = ["Hidden", "hidden_because", "link_of", "loaded", "with_sidecar"]

_REPLAYS = ("acompact-", "aside_question-")  # these repeat the lines and ids of their parent


def loaded(path: Path) -> dict[str, Any]:
    """Return the sidecar of a transcript; empty if there is none."""
    try:
        found = lenient_json.load(path.with_name(f"{path.stem}.meta.json").read_bytes())
    except (OSError, *lenient_json.FAILURES):
        return {}
    return found if isinstance(found, dict) else {}


def link_of(agent_id: str, sidecar: dict[str, Any]) -> SubagentLink | None:
    """Return the link to the call that started the subagent. The sidecar is the best evidence."""
    call = text(sidecar.get("toolUseId"))
    if call is None:
        return None
    return SubagentLink(agent_id=agent_id, tool_call_id=call, evidence="sidecar file", strength=1)


def with_sidecar(agent: Agent, sidecar: dict[str, Any], model: str | None) -> Agent:
    """Return the subagent with the fields of its sidecar."""
    return replace(
        agent,
        tool_call_id=text(sidecar.get("toolUseId")) or agent.tool_call_id,
        parent_agent_id=text(sidecar.get("parentAgentId")) or agent.parent_agent_id,
        kind=text(sidecar.get("agentType")) or agent.kind,
        description=text(sidecar.get("description")) or agent.description,
        model=text(sidecar.get("model")) or model or agent.model,
    )


class Hidden(NamedTuple):
    """Why a conversation is hidden from lists."""

    reason: str
    is_unlinked: bool = False  # hidden only because no tool call is known that started it


def hidden_because(agent: Agent, *, is_bare_answer: bool = False) -> Hidden | None:
    """Return why an agent is the tool's own background work, or None if the user asked for it.

    ``is_bare_answer``: its file is not in a ``subagents`` folder, begins with an assistant message and has no
    sidecar that names a tool call.
    """
    if agent.agent_id.startswith(_REPLAYS):
        return Hidden("replays its parent")
    if (agent.prompt or "").strip() == "Warmup":
        return Hidden("warm-up")
    if is_bare_answer:
        return Hidden("begins with an answer and is linked to no call", is_unlinked=True)
    return None
