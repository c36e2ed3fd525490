"""What sessions belong to, and what belongs to them: workspaces and subagents."""

from typing import TYPE_CHECKING

from backscroll.errors import SessionNotFoundError
from backscroll.history.sessions import Sessions

if TYPE_CHECKING:
    from backscroll.model.agent_session import AgentSession
    from backscroll.model.workspace import WorkspaceSummary

__all__ = ["Belonging"]


class Belonging(Sessions):
    """What sessions belong to, and what belongs to them: workspaces and subagents."""

    def list_workspaces(self) -> "list[WorkspaceSummary]":
        """Every workspace that a session belongs to, the one used last first."""
        return self._archive.every_workspace()

    def get_agent_session(self, ref: str) -> "AgentSession":
        """A subagent with every message of it. Raises `SessionNotFoundError` when it is no subagent."""
        from backscroll.model.agent_session import AgentSession

        summary = self.find(ref)
        if summary.parent_ref is None:
            started = ", ".join(summary.agent_ids) or "it started none"
            raise SessionNotFoundError(f"{summary.ref} is a session, not a subagent; its own: {started}", ref)
        messages = tuple(self._archive.messages_of(summary))
        times = [message.timestamp for message in messages if message.timestamp is not None]
        prompts = (message.content for message in messages if message.role == "user")
        took = round((max(times) - min(times)).total_seconds() * 1000) if times else None
        return AgentSession(
            agent_id=summary.id,
            parent_session_id=summary.parent_ref.partition(":")[2],
            prompt=next(prompts, None),
            model=summary.models[0] if summary.models else None,
            messages=messages,
            total_duration_ms=took,
            total_tokens=summary.total_tokens,
            total_tool_use_count=sum(message.tool is not None for message in messages),
        )
