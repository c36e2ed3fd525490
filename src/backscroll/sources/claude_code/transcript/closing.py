"""Facts about a session, known at the end of its transcript."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from backscroll.model import Agent, Closing
from backscroll.sources.claude_code.transcript import subagent_sidecar
from backscroll.sources.claude_code.transcript.branches import SIDE
from backscroll.sources.claude_code.workspace import of_session, project_folder

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript

__all__ = ["closing"]


def closing(transcript: "Transcript", *, is_truncated: bool = False) -> Closing:
    """Return the closing of a transcript. ``is_truncated``: its last line is incomplete."""
    state, path = transcript.state, transcript.path
    facts = state.facts
    is_agent = transcript.agent_id is not None
    title, title_source = facts.title
    own = state.parent_id if is_agent else path.stem
    folder = project_folder(path)
    agents = _agents(transcript, own, folder)
    hidden = _hidden_because(transcript, agents[0] if is_agent else None, folder)
    reasons = [hidden.reason] if hidden is not None else []
    faults = state.faults + is_truncated
    if faults:
        reasons.append(f"{faults} lines cannot be read" if faults > 1 else "a line cannot be read")
    at = facts.first_at
    modified = datetime.fromtimestamp(Path(transcript.unit.path).stat().st_mtime, UTC) if at is None else None
    return Closing(
        title=title,
        title_source=title_source,
        workspace=of_session(folder, own, facts),
        created_at=at or modified,
        created_at_source="stored" if at else "file",
        updated_at=facts.last_at or modified,
        git_branch=facts.branch,
        version=facts.version,
        completeness="partial" if faults else "complete",
        reasons=tuple(reasons),
        visibility="listed" if hidden is None else "hidden",
        is_unlinked=hidden is not None and hidden.is_unlinked,
        agents=agents,
        abandoned=transcript.tree.retracted() if is_agent else transcript.tree.abandoned(),
        tracked_files=tuple(facts.files.values()),
        metadata=_metadata(transcript, own, folder),
    )


def _agents(transcript: "Transcript", own: str | None, folder: Path | None) -> tuple[Agent, ...]:
    """Return the subagents. In the file of a subagent the first is the subagent itself."""
    agents = transcript.state.agents.all_agents(own, transcript.agent_id)
    if transcript.agent_id is None:
        return agents
    first, *started = agents
    first = subagent_sidecar.with_sidecar(first, transcript.sidecar, transcript.state.model)
    first = replace(first, is_hidden=_hidden_because(transcript, first, folder) is not None)
    return (first, *(replace(agent, parent_agent_id=transcript.agent_id) for agent in started))


def _hidden_because(
    transcript: "Transcript", agent: Agent | None, folder: Path | None
) -> subagent_sidecar.Hidden | None:
    """Return why a conversation is hidden from lists."""
    if agent is None:
        tree = transcript.tree
        spoken = any(
            count and not flags & SIDE for count, flags in zip(tree.message_counts, tree.flags, strict=True)
        )
        return None if spoken else subagent_sidecar.Hidden("nothing but subagents' lines")
    is_flat = folder == transcript.path.parent
    is_bare = transcript.state.first_role == "assistant" and is_flat and not transcript.sidecar
    return subagent_sidecar.hidden_because(agent, is_bare_answer=is_bare)


def _metadata(transcript: "Transcript", own: str | None, folder: Path | None) -> dict[str, Any]:
    facts = transcript.state.facts
    found = facts.metadata()
    if others := [id_ for id_ in facts.session_ids if id_ != own]:
        found["other_session_ids"] = others
    if len(facts.cwds) > 1:
        found["cwds"] = list(facts.cwds)
    if folder is not None:
        found["encoded_path"] = folder.name
    return found
