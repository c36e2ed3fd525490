"""A subagent with every message of it."""

from msgspec import Struct

from backscroll.model.message import Message

__all__ = ["AgentSession"]


class AgentSession(Struct, frozen=True, kw_only=True):
    """A subagent: what it was asked, what it did, what that took."""

    agent_id: str
    parent_session_id: str
    prompt: str | None
    model: str | None
    messages: tuple[Message, ...]
    total_duration_ms: int | None  # from its first message to its last; None when they have no times
    total_tokens: int | None
    total_tool_use_count: int
