"""Build the closing of a transcript: the facts about a session that are known at its end."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from backscroll.model import Agent, Closing
from backscroll.model.text import pluralize
from backscroll.sources.claude_code.transcript.branches import SIDECHAIN
from backscroll.sources.claude_code.transcript.subagents import sidecar
from backscroll.sources.claude_code.workspace import find_workspace, project_folder

if TYPE_CHECKING:
    from backscroll.sources.claude_code.transcript.reader import Transcript

__all__ = ["build_closing"]


def build_closing(transcript: "Transcript", *, is_truncated: bool = False) -> Closing:
    """Return the closing of a transcript. ``is_truncated`` means that its last line is incomplete."""
    state, tree, path = transcript.state, transcript.tree, transcript.path
    facts = state.facts
    is_agent = transcript.agent_id is not None
    title, title_source = facts.title
    session_id = state.parent_id if is_agent else path.stem
    folder = project_folder(path)
    agents = _agents(transcript, session_id, folder)
    hidden = _find_hidden_reason(transcript, agents[0] if is_agent else None, folder)
    reasons = [hidden.reason] if hidden is not None else []
    fault_count = state.fault_count + is_truncated
    if fault_count:
        reasons.append(f"{pluralize(fault_count, 'line')} cannot be read")
    if transcript.is_from_progress_lines:
        reasons.append("its file is missing; only its prompt and tool calls are left, in its session's file")
    first_at = facts.first_at
    modified_at = (
        datetime.fromtimestamp(Path(transcript.unit.path).stat().st_mtime, UTC) if first_at is None else None
    )
    return Closing(
        title=title,
        title_source=title_source,
        workspace=find_workspace(folder, session_id, facts),
        created_at=first_at or modified_at,
        created_at_source="stored" if first_at else "file",
        updated_at=facts.last_at or modified_at,
        git_branch=facts.branch,
        version=facts.version,
        completeness="partial" if fault_count or transcript.is_from_progress_lines else "complete",
        reasons=tuple(reasons),
        visibility="listed" if hidden is None else "hidden",
        is_unlinked=hidden is not None and hidden.is_unlinked,
        agents=agents,
        abandoned=tree.removed_message_ids() if is_agent else tree.inactive_message_ids(),
        tracked_files=tuple(facts.files.values()),
        copied=() if is_agent else tuple(state.copies.spans),
        last_record_id=None if is_agent else tree.last_id_without_message(),
        metadata=_metadata(transcript, session_id, folder),
    )


def _agents(transcript: "Transcript", session_id: str | None, folder: Path | None) -> tuple[Agent, ...]:
    """Return the subagents. In the file of a subagent the first is the subagent itself."""
    agents = transcript.state.agents.all_agents(session_id, transcript.agent_id)
    if transcript.agent_id is None:
        return agents
    first, *others = agents
    first = sidecar.with_sidecar(first, transcript.sidecar, transcript.state.model)
    first = replace(first, is_hidden=_find_hidden_reason(transcript, first, folder) is not None)
    return (first, *(replace(agent, parent_agent_id=transcript.agent_id) for agent in others))


def _find_hidden_reason(
    transcript: "Transcript", agent: Agent | None, folder: Path | None
) -> sidecar.HiddenReason | None:
    """Return why a conversation is hidden from lists; None if it is listed."""
    if agent is None:
        tree = transcript.tree
        has_messages = any(
            count and not flags & SIDECHAIN
            for count, flags in zip(tree.message_counts, tree.flags, strict=True)
        )
        return None if has_messages else sidecar.HiddenReason("contains only subagent lines")
    is_flat = folder == transcript.path.parent and not transcript.is_from_progress_lines
    is_bare_answer = transcript.state.first_role == "assistant" and is_flat and not transcript.sidecar
    return sidecar.find_hidden_reason(agent, is_bare_answer=is_bare_answer)


def _metadata(transcript: "Transcript", session_id: str | None, folder: Path | None) -> dict[str, Any]:
    facts = transcript.state.facts
    metadata = facts.metadata()
    if other_ids := [id_ for id_ in facts.session_ids if id_ != session_id]:
        metadata["other_session_ids"] = other_ids
    if len(facts.cwds) > 1:
        metadata["cwds"] = list(facts.cwds)
    if folder is not None:
        metadata["encoded_path"] = folder.name
    return metadata
