"""What a search finds."""

from datetime import datetime

from msgspec import Struct

from backscroll.model.message import Role

__all__ = ["Excerpt", "RecallResult", "RecalledSession", "SearchMatch", "SearchResult"]


class SearchMatch(Struct, frozen=True, kw_only=True, gc=False):
    """A message that was found, and the place in it."""

    session_ref: str
    session_id: str
    session_index: int | None
    source: str
    title: str | None
    workspace_name: str | None
    message_id: str
    message_index: int  # its position in the session, from 0
    role: Role
    timestamp: datetime | None
    match: str
    highlights: tuple[tuple[int, int], ...]  # in the match
    context: tuple[str, ...]  # the lines around it, itself among them
    line_number: int
    score: float
    match_count: int  # messages of the session that fit
    is_note: bool = False  # found in what people noted of the session; the message is its first


class SearchResult(Struct, frozen=True, kw_only=True):
    """One page of matches."""

    data: tuple[SearchMatch, ...]
    total: int | None  # None where counting would cost too much
    total_at_least: int | None = None
    limit: int
    offset: int
    has_more: bool
    took_ms: float
    is_relaxed: bool = False  # no message has every word; these have the most
    is_cut_short: bool = False  # time ran out before everything was looked at

    @property
    def is_counted(self) -> bool:
        """Whether all are known: they were counted, or the last of them was met."""
        return self.total is not None or not self.has_more


class Excerpt(Struct, frozen=True, kw_only=True):
    """A place in a session that bears on a task: what had been asked, what was said, what came of it."""

    agent_ref: str | None  # the subagent that it is from; None when it is from the session itself
    message_index: int  # the message's position there, from 0
    role: Role
    timestamp: datetime | None
    asked: str | None  # the prompt of that turn; None when it is the text itself
    text: str
    outcome: str | None  # the assistant's last words in that turn; None when they are the text itself


class RecalledSession(Struct, frozen=True, kw_only=True):
    """A session that bears on a task."""

    session_ref: str
    session_id: str
    title: str | None
    workspace_name: str | None
    updated_at: datetime | None
    excerpts: tuple[Excerpt, ...]


class RecallResult(Struct, frozen=True, kw_only=True):
    """The sessions that bear on a task, the most useful first."""

    task: str
    sessions: tuple[RecalledSession, ...]
    token_budget: int
    left_out: int  # sessions that would fit the task but not the budget
