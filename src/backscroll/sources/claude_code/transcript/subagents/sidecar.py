"""Sidecar of a subagent's transcript: a JSON file with the call that started it and its type."""

from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from backscroll.model import Agent, SubagentLink
from backscroll.readers import lenient_json
from backscroll.sources.claude_code.transcript.line_structs import as_text

__all__ = ["HiddenReason", "find_hidden_reason", "load_sidecar", "sidecar_link", "with_sidecar"]

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
