"""What earlier sessions have to say about a task."""

from datetime import datetime

from msgspec import Struct

from backscroll.model.message import Role

__all__ = ["Excerpt", "Recalled", "Recollection"]


class Excerpt(Struct, frozen=True, kw_only=True):
    """A place in a session that bears on a task: what had been asked, what was said, what came of it."""

    agent_ref: str | None  # the subagent that it is from; None when it is from the session itself
    message_index: int  # the message's position there, from 0
    role: Role
    timestamp: datetime | None
    asked: str | None  # the prompt of that turn; None when it is the text itself
    text: str
    outcome: str | None  # the assistant's last words in that turn; None when they are the text itself


class Recalled(Struct, frozen=True, kw_only=True):
    """A session that bears on a task."""

    session_ref: str
    session_id: str
    title: str | None
    workspace_name: str | None
    updated_at: datetime | None
    excerpts: tuple[Excerpt, ...]


class Recollection(Struct, frozen=True, kw_only=True):
    """The sessions that bear on a task, the most useful first."""

    task: str
    sessions: tuple[Recalled, ...]
    token_budget: int
    left_out: int  # sessions that would fit the task but not the budget
